/* SPDX-License-Identifier: Apache-2.0 */
/* The man page headrace(1), from the command table. */
#include <stdio.h>
#include <string.h>

#include "cli/commands.h"
#include "common/config.h"

static void put_option_roff(const struct hr_option *option)
{
	fputs(".TP\n", stdout);
	if (option->id < 128)
		printf("\\fB\\-%c\\fR, ", option->id);
	fputs("\\fB\\-\\-", stdout);
	hr_config_roff(option->name, stdout);
	fputs("\\fR", stdout);
	if (option->arg != NULL)
		printf("%s\\fI%s\\fR", hr_option_needs_value(option) ? " " : "", option->arg);
	putchar('\n');
	hr_config_roff(option->help, stdout);
	putchar('\n');
}

static void put_topic_roff(const char *name, const char *about, size_t n)
{
	char text[256];

	snprintf(text, sizeof(text), "%.*s", (int)n, about);
	printf(".TP\n\\fB");
	hr_config_roff(name, stdout);
	puts("\\fR");
	hr_config_roff(text, stdout);
	putchar('\n');
}

static void print_man(void)
{
	puts(".TH HEADRACE 1 \"\" \"headrace " HEADRACE_VERSION "\" \"User Commands\"\n"
	     ".SH NAME\nheadrace \\- record every I/O operation of a job, and find out what it "
	     "waits for\n"
	     ".SH SYNOPSIS");
	for (const struct hr_command *c = hr_commands; c->name != NULL; c++) {
		printf("%s\\fBheadrace %s\\fR ", c == hr_commands ? "" : ".br\n", c->name);
		hr_config_roff(c->synopsis, stdout);
		putchar('\n');
	}
	puts(".SH COMMANDS");
	for (const struct hr_command *c = hr_commands; c->name != NULL; c++) {
		printf(".SS headrace %s\n", c->name);
		hr_config_roff(c->about, stdout);
		putchar('\n');
		for (const struct hr_option *o = c->options; o->name != NULL; o++)
			put_option_roff(o);
		if (c->topics == NULL)
			continue;
		printf(".PP\n%s:\n", c->topics_title);
		c->topics(put_topic_roff);
	}
	puts(".SH ENVIRONMENT");
	for (const struct hr_variable *v = hr_variables; v->names != NULL; v++) {
		printf(".TP\n\\fB%s\\fR\n", v->names);
		hr_config_roff(v->what, stdout);
		putchar('\n');
	}
	puts(".SH EXAMPLES\n.nf\nheadrace run \\-\\- python3 train.py\n"
	     "headrace query ./headrace\\-* workers\n.fi\n"
	     ".SH SEE ALSO\nheadraced(8), headrace\\-collector(8); run.md, tls.md, queries.md "
	     "(named queries and formats), sql.md (tables and columns), regions.md and python.md "
	     "(how programs mark phases: headrace.h, import headrace) and shim.md (what is "
	     "recorded) in share/doc/headrace/docs.");
}

bool hr_manual_print(const char *form)
{
	static const struct {
		const char *form;
		void (*print)(void);
	} forms[] = {{"man", print_man},
		     {"bash", hr_completions_bash},
		     {"zsh", hr_completions_zsh},
		     {"fish", hr_completions_fish}};

	for (size_t i = 0; i < sizeof(forms) / sizeof(forms[0]); i++) {
		if (strcmp(form, forms[i].form) == 0) {
			forms[i].print();
			return true;
		}
	}
	return false;
}

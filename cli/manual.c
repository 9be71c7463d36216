/* SPDX-License-Identifier: Apache-2.0 */
/* The man page headrace(1) and the shells' completions, from the command table. */
#include <stdio.h>
#include <string.h>

#include "cli/commands.h"

/* ---- man ------------------------------------------------------------------------------------- */

/* Text for troff: no line starts with a control character, backslashes and hyphens are literal. */
static void put_roff(const char *text)
{
	if (*text == '.' || *text == '\'')
		fputs("\\&", stdout);
	for (; *text != '\0'; text++) {
		if (*text == '\\')
			fputs("\\e", stdout);
		else if (*text == '-')
			fputs("\\-", stdout);
		else
			putchar(*text);
	}
}

static void put_option_roff(const struct hr_option *option)
{
	fputs(".TP\n", stdout);
	if (option->id < 128)
		printf("\\fB\\-%c\\fR, ", option->id);
	fputs("\\fB\\-\\-", stdout);
	put_roff(option->name);
	fputs("\\fR", stdout);
	if (option->arg != NULL)
		printf(" \\fI%s\\fR", option->arg);
	putchar('\n');
	put_roff(option->help);
	putchar('\n');
}

static void put_topic_roff(const char *name, const char *about, size_t n)
{
	char text[256];

	snprintf(text, sizeof(text), "%.*s", (int)n, about);
	printf(".TP\n\\fB");
	put_roff(name);
	puts("\\fR");
	put_roff(text);
	putchar('\n');
}

static void print_man(void)
{
	puts(".TH HEADRACE 1 \"\" \"headrace " HEADRACE_VERSION "\" \"User Commands\"\n"
	     ".SH NAME\nheadrace \\- record every I/O operation of a job, and ask what it waits "
	     "for\n"
	     ".SH SYNOPSIS");
	for (const struct hr_command *c = hr_commands; c->name != NULL; c++) {
		printf("%s\\fBheadrace %s\\fR ", c == hr_commands ? "" : ".br\n", c->name);
		put_roff(c->synopsis);
		putchar('\n');
	}
	puts(".SH COMMANDS");
	for (const struct hr_command *c = hr_commands; c->name != NULL; c++) {
		printf(".SS headrace %s\n", c->name);
		put_roff(c->about);
		putchar('\n');
		for (const struct hr_option *o = c->options; o->name != NULL; o++)
			put_option_roff(o);
		if (c->topics == NULL)
			continue;
		printf(".PP\n%s:\n", c->topics_title);
		c->topics(put_topic_roff);
	}
	puts(".SH ENVIRONMENT\n.TP\n\\fBHEADRACE=off\\fR\n\\fBrun\\fR runs CMD alone.\n"
	     ".TP\n\\fBHEADRACE_EXCLUDE\\fR, \\fBHEADRACE_INCLUDE\\fR\nas the options.\n"
	     ".TP\n\\fBHEADRACE_LIBEXEC\\fR\nfolder of headraced and libheadrace.so.\n"
	     ".TP\n\\fBHEADRACE_DUCKDB\\fR\nlibduckdb.so, or its folder.\n"
	     ".SH EXAMPLES\n.nf\nheadrace run \\-\\- python3 train.py\n"
	     "headrace query ./headrace\\-* workers\n.fi\n"
	     ".SH SEE ALSO\nrun.md, queries.md (named queries and formats), sql.md (tables and "
	     "columns) and shim.md (what is recorded) in share/doc/headrace.");
}

/* ---- completions ----------------------------------------------------------------------------- */

static void put_options(const struct hr_option *options, bool with_value)
{
	const char *before = "";

	for (const struct hr_option *o = options; o->name != NULL; o++) {
		if (with_value && o->arg == NULL)
			continue;
		if (o->id < 128) {
			printf("%s-%c", before, o->id);
			before = with_value ? "|" : " ";
		}
		printf("%s--%s", before, o->name);
		before = with_value ? "|" : " ";
	}
}

/* A word of a list of all topics. */
static void put_topic_word(const char *name, const char *about, size_t n)
{
	(void)about;
	(void)n;
	printf(" %s", name);
}

/*
 * The command comes first, then its options, and files or named queries. Behind an option that
 * takes a value comes a file, behind `run --` what the shell knows about CMD.
 */
static void print_bash(void)
{
	puts("_headrace() {\n"
	     "\tlocal cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD - 1]}\n"
	     "\tlocal command=${COMP_WORDS[1]} options='' values='' words='' i\n"
	     "\tif [ \"$COMP_CWORD\" = 1 ]; then");
	fputs("\t\tmapfile -t COMPREPLY < <(compgen -W '--help --version", stdout);
	for (const struct hr_command *c = hr_commands; c->name != NULL; c++)
		printf(" %s", c->name);
	puts("' -- \"$cur\")\n\t\treturn\n\tfi\n\tcase $command in");
	for (const struct hr_command *c = hr_commands; c->name != NULL; c++) {
		printf("\t%s)\n\t\toptions='", c->name);
		put_options(c->options, false);
		fputs("' values='", stdout);
		put_options(c->options, true);
		puts("'");
		if (c->topics == hr_query_topics) {
			fputs("\t\twords='", stdout);
			c->topics(put_topic_word);
			puts("'");
		}
		puts("\t\t;;");
	}
	puts("\tesac\n"
	     "\tfor ((i = 2; i < COMP_CWORD; i++)); do\n"
	     "\t\t[[ $command == run && ${COMP_WORDS[i]} == -- ]] || continue\n"
	     "\t\tif declare -F _command_offset >/dev/null; then\n"
	     "\t\t\t_command_offset $((i + 1))\n"
	     "\t\telif ((i + 1 == COMP_CWORD)); then\n"
	     "\t\t\tmapfile -t COMPREPLY < <(compgen -A command -- \"$cur\")\n"
	     "\t\telse\n"
	     "\t\t\tmapfile -t COMPREPLY < <(compgen -A file -- \"$cur\")\n"
	     "\t\tfi\n"
	     "\t\treturn\n"
	     "\tdone\n"
	     "\tif [[ $cur == -* ]]; then\n"
	     "\t\tmapfile -t COMPREPLY < <(compgen -W \"$options\" -- \"$cur\")\n"
	     "\telif [[ $prev == -* && \"|$values|\" == *\"|$prev|\"* ]]; then\n"
	     "\t\tmapfile -t COMPREPLY < <(compgen -A file -- \"$cur\")\n"
	     "\telse\n"
	     "\t\tmapfile -t COMPREPLY < <(compgen -W \"$words\" -- \"$cur\"; compgen -A file -- "
	     "\"$cur\")\n"
	     "\tfi\n}\n"
	     "complete -o filenames -F _headrace headrace");
}

/* A text inside '...': a quote ends them, stands escaped, and begins them again. */
static void put_quoted(const char *text)
{
	for (; *text != '\0'; text++)
		if (*text == '\'')
			fputs("'\\''", stdout);
		else
			putchar(*text);
}

static void put_zsh_option(const struct hr_option *o)
{
	const char *arg = o->arg != NULL ? o->arg : "";

	if (o->id < 128)
		printf(" \\\n\t'(-%c --%s)'{-%c,--%s%s}'[", o->id, o->name, o->id, o->name,
		       o->arg != NULL ? "=" : "");
	else
		printf(" \\\n\t'--%s%s[", o->name, o->arg != NULL ? "=" : "");
	put_quoted(o->help);
	printf("]%s%s%s'", o->arg != NULL ? ":" : "", arg, o->arg != NULL ? ":_files" : "");
}

/* `run` goes on with a command line, `query` with stores and a name. */
static void put_zsh_operands(const struct hr_command *c)
{
	if (strcmp(c->name, "run") == 0) {
		puts(" \\\n\t'*:::command:{ [[ $words[1] == -- ]] && shift words && "
		     "(( CURRENT-- )); _normal }' ;;");
	} else if (c->topics == hr_query_topics) {
		fputs(" \\\n\t'*:store or name:{_files -/; compadd --", stdout);
		c->topics(put_topic_word);
		puts("}' ;;");
	} else {
		puts(" \\\n\t'*:folder:_files -/' ;;");
	}
}

/* `commands` is the name of zsh's own table of programs, which completing CMD needs. */
static void print_zsh(void)
{
	puts("#compdef headrace\nlocal -a known\nknown=(");
	for (const struct hr_command *c = hr_commands; c->name != NULL; c++) {
		printf("\t'%s:", c->name);
		put_quoted(c->what);
		puts("'");
	}
	puts(")\nif (( CURRENT == 2 )); then\n\t_describe command known\n\treturn\nfi\n"
	     "local command=$words[2]\nshift words\n(( CURRENT-- ))\n"
	     "case $command in");
	for (const struct hr_command *c = hr_commands; c->name != NULL; c++) {
		printf("%s) _arguments -S -s", c->name);
		for (const struct hr_option *o = c->options; o->name != NULL; o++)
			put_zsh_option(o);
		put_zsh_operands(c);
	}
	puts("esac");
}

static void put_fish_option(const struct hr_command *c, const struct hr_option *o)
{
	printf("complete -c headrace -n '__fish_seen_subcommand_from %s'", c->name);
	if (o->id < 128)
		printf(" -s %c", o->id);
	printf(" -l %s%s -d '", o->name, o->arg != NULL ? " -r" : "");
	put_quoted(o->help);
	puts("'");
}

static void print_fish(void)
{
	for (const struct hr_command *c = hr_commands; c->name != NULL; c++) {
		printf("complete -c headrace -n __fish_use_subcommand -f -a %s -d '", c->name);
		put_quoted(c->what);
		puts("'");
		for (const struct hr_option *o = c->options; o->name != NULL; o++)
			put_fish_option(c, o);
		if (c->topics != hr_query_topics)
			continue;
		printf("complete -c headrace -n '__fish_seen_subcommand_from %s' -a '", c->name);
		c->topics(put_topic_word);
		puts("'");
	}
}

bool hr_manual_print(const char *form)
{
	static const struct {
		const char *form;
		void (*print)(void);
	} forms[] = {
	    {"man", print_man}, {"bash", print_bash}, {"zsh", print_zsh}, {"fish", print_fish}};

	for (size_t i = 0; i < sizeof(forms) / sizeof(forms[0]); i++) {
		if (strcmp(form, forms[i].form) == 0) {
			forms[i].print();
			return true;
		}
	}
	return false;
}

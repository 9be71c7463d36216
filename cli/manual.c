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

static void print_man(const struct hr_command *commands)
{
	puts(".TH HEADRACE 1 \"\" \"headrace " HEADRACE_VERSION "\" \"User Commands\"\n"
	     ".SH NAME\nheadrace \\- record every I/O operation of a job, and ask what it waits "
	     "for\n"
	     ".SH SYNOPSIS");
	for (const struct hr_command *c = commands; c->name != NULL; c++) {
		printf("%s\\fBheadrace %s\\fR ", c == commands ? "" : ".br\n", c->name);
		put_roff(c->synopsis);
		putchar('\n');
	}
	puts(".SH COMMANDS");
	for (const struct hr_command *c = commands; c->name != NULL; c++) {
		printf(".SS headrace %s\n", c->name);
		put_roff(c->what);
		putchar('\n');
		for (const struct hr_option *o = c->options; o->name != NULL; o++)
			put_option_roff(o);
	}
	puts(".SH EXIT STATUS\n\\fBrun\\fR: that of CMD, 128 + n when signal n killed it, 127 not "
	     "found, 126 "
	     "not executable, 125 the store cannot be made. Others: 0, 1 failure, 2 usage, 66 no "
	     "store, 69 no "
	     "DuckDB.\n"
	     ".SH ENVIRONMENT\n.TP\n\\fBHEADRACE=off\\fR\n\\fBrun\\fR runs CMD alone.\n"
	     ".TP\n\\fBHEADRACE_EXCLUDE\\fR, \\fBHEADRACE_INCLUDE\\fR\nas the options.\n"
	     ".TP\n\\fBHEADRACE_LIBEXEC\\fR\nfolder of headraced and libheadrace.so.\n"
	     ".TP\n\\fBHEADRACE_DUCKDB\\fR\nlibduckdb.so.\n"
	     ".SH EXAMPLES\n.nf\nheadrace run \\-\\- python3 train.py\n"
	     "headrace query ./headrace\\-* workers\n.fi");
}

/* ---- completions ----------------------------------------------------------------------------- */

static void put_words(const struct hr_option *options)
{
	for (const struct hr_option *o = options; o->name != NULL; o++)
		printf("%s--%s", o == options ? "" : " ", o->name);
}

static void print_bash(const struct hr_command *commands)
{
	puts("_headrace() {\n\tlocal cur=${COMP_WORDS[COMP_CWORD]} words=\n\tcase ${COMP_WORDS[1]} "
	     "in");
	for (const struct hr_command *c = commands; c->name != NULL; c++) {
		printf("\t%s) words='", c->name);
		put_words(c->options);
		puts("' ;;");
	}
	fputs("\tesac\n\t[ \"$COMP_CWORD\" -gt 1 ] || words='--help --version", stdout);
	for (const struct hr_command *c = commands; c->name != NULL; c++)
		printf(" %s", c->name);
	puts("'\n\tif [ \"$COMP_CWORD\" -gt 1 ] && [[ $cur != -* ]]; then\n"
	     "\t\tmapfile -t COMPREPLY < <(compgen -A command -A file -- \"$cur\")\n\telse\n"
	     "\t\tmapfile -t COMPREPLY < <(compgen -W \"$words\" -- \"$cur\")\n\tfi\n}\n"
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

static void print_zsh(const struct hr_command *commands)
{
	puts("#compdef headrace\nlocal -a commands\ncommands=(");
	for (const struct hr_command *c = commands; c->name != NULL; c++) {
		printf("\t'%s:", c->name);
		put_quoted(c->what);
		puts("'");
	}
	puts(")\nif (( CURRENT == 2 )); then\n\t_describe command commands\n\treturn\nfi\n"
	     "case $words[2] in");
	for (const struct hr_command *c = commands; c->name != NULL; c++) {
		printf("%s) _arguments", c->name);
		for (const struct hr_option *o = c->options; o->name != NULL; o++) {
			printf(" \\\n\t'--%s[", o->name);
			put_quoted(o->help);
			printf("]%s%s'", o->arg != NULL ? ":" : "", o->arg != NULL ? o->arg : "");
		}
		puts(" \\\n\t'*:file:_files' ;;");
	}
	puts("esac");
}

static void print_fish(const struct hr_command *commands)
{
	for (const struct hr_command *c = commands; c->name != NULL; c++) {
		printf("complete -c headrace -n __fish_use_subcommand -f -a %s -d '", c->name);
		put_quoted(c->what);
		puts("'");
		for (const struct hr_option *o = c->options; o->name != NULL; o++) {
			printf("complete -c headrace -n '__fish_seen_subcommand_from %s' -l %s%s "
			       "-d '",
			       c->name, o->name, o->arg != NULL ? " -r" : "");
			put_quoted(o->help);
			puts("'");
		}
	}
}

bool hr_manual_print(const struct hr_command *commands, const char *form)
{
	static const struct {
		const char *form;
		void (*print)(const struct hr_command *commands);
	} forms[] = {
	    {"man", print_man}, {"bash", print_bash}, {"zsh", print_zsh}, {"fish", print_fish}};

	for (size_t i = 0; i < sizeof(forms) / sizeof(forms[0]); i++) {
		if (strcmp(form, forms[i].form) == 0) {
			forms[i].print(commands);
			return true;
		}
	}
	return false;
}

/* SPDX-License-Identifier: Apache-2.0 */
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "cli/commands.h"

static void put_options(const struct hr_option *options, bool with_value)
{
	const char *before = "";

	for (const struct hr_option *o = options; o->name != NULL; o++) {
		if (with_value && !hr_option_needs_value(o))
			continue;
		if (o->id < 128) {
			printf("%s-%c", before, o->id);
			before = with_value ? "|" : " ";
		}
		printf("%s--%s", before, o->name);
		before = with_value ? "|" : " ";
	}
}

static void put_topic_word(const char *name, const char *about, size_t n)
{
	(void)about;
	(void)n;
	printf(" %s", name);
}

/* Prints the values of an option, each after a blank. */
static void put_values(const struct hr_option *o)
{
	if (strcmp(o->values, HR_VALUES_QUERIES) == 0)
		hr_query_topics(put_topic_word);
	else if (o->values[0] != '\0')
		printf(" %s", o->values);
}

/* Prints `case` lines with the values of each option that has a list of values. */
static void put_bash_values(const struct hr_command *c)
{
	for (const struct hr_option *o = c->options; o->name != NULL; o++) {
		if (o->arg == NULL || o->values == NULL)
			continue;
		printf("\t\t'%s --%s') offer='", c->name, o->name);
		put_values(o);
		puts("' ;;");
	}
}

static void put_bash_cases(void)
{
	puts("\tlocal offer='|'\n\tcase \"$command $prev\" in");
	for (const struct hr_command *c = hr_commands; c->name != NULL; c++)
		put_bash_values(c);
	puts("\tesac\n\tif [[ $offer != '|' ]]; then\n"
	     "\t\tmapfile -t COMPREPLY < <(compgen -W \"$offer\" -- \"$cur\")\n"
	     "\t\treturn\n\tfi");
}

/*
 * Completes the command, its options, then operands, or files if it knows no operands. After an
 * option with a free value it completes files. After `run --` the shell completes CMD by its own
 * rules. Bash splits words at `=`, so that NAME=VALUE are three words.
 */
void hr_completions_bash(void)
{
	puts("_headrace() {\n"
	     "\tlocal cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD - 1]}\n"
	     "\tlocal command=${COMP_WORDS[1]} options='' values='' word i\n"
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
	     "\tdone");
	put_bash_cases();
	puts("\tif [[ $cur == -* ]]; then\n"
	     "\t\tmapfile -t COMPREPLY < <(compgen -W \"$options\" -- \"$cur\")\n"
	     "\telif [[ $prev == -* && \"|$values|\" == *\"|$prev|\"* ]]; then\n"
	     "\t\tmapfile -t COMPREPLY < <(compgen -A file -- \"$cur\")\n"
	     "\telse\n"
	     "\t\tword=$cur\n"
	     "\t\t[[ $cur != = ]] || { word=$prev=; cur=''; }\n"
	     "\t\t[[ $prev != = ]] || word=${COMP_WORDS[COMP_CWORD - 2]}=$cur\n"
	     "\t\tmapfile -t COMPREPLY < <(\"${COMP_WORDS[0]}\" --complete \"$command\" "
	     "\"${COMP_WORDS[@]:2:COMP_CWORD-2}\" \"$word\" 2>/dev/null)\n"
	     "\t\t((${#COMPREPLY[@]})) || "
	     "mapfile -t COMPREPLY < <(compgen -A file -- \"$cur\")\n"
	     "\t\tCOMPREPLY=(\"${COMPREPLY[@]#\"${word%\"$cur\"}\"}\")\n"
	     "\t\t[[ ${COMPREPLY[0]} != *= ]] || compopt -o nospace\n"
	     "\tfi\n}\n"
	     "complete -o filenames -F _headrace headrace");
}

/* Prints a text that stands between single quotes: each single quote in the text becomes '\'' */
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
	bool optional = o->arg != NULL && !hr_option_needs_value(o);

	if (o->id < 128)
		printf(" \\\n\t'(-%c --%s)'{-%c,--%s%s}'[", o->id, o->name, o->id, o->name,
		       o->arg != NULL ? "=" : "");
	else
		printf(" \\\n\t'--%s%s%s[", o->name, o->arg != NULL ? "=" : "",
		       optional ? "-" : "");
	put_quoted(o->help);
	if (optional)
		fputs("]::value:", stdout);
	else
		printf("]%s%s%s", o->arg != NULL ? ":" : "", arg, o->arg != NULL ? ":" : "");
	if (o->arg != NULL && o->values == NULL) {
		fputs("_files", stdout);
	} else if (o->arg != NULL && o->values[0] != '\0') {
		putchar('(');
		put_values(o);
		putchar(')');
	}
	putchar('\'');
}

/* For `run`, completes a command line; for others, files and what --complete offers. */
static void put_zsh_operands(const struct hr_command *c)
{
	if (strcmp(c->name, "run") == 0)
		puts(" \\\n\t'*:::command:{ [[ $words[1] == -- ]] && shift words && "
		     "(( CURRENT-- )); _normal }' ;;");
	else
		puts(" \\\n\t'*:operand:_headrace_operands' ;;");
}

/* The script must not set `commands`, zsh's table of programs, from which zsh completes CMD. */
void hr_completions_zsh(void)
{
	puts("#compdef headrace\n"
	     "_headrace_operands() {\n"
	     "\tlocal -a found\n"
	     "\tfound=(\"${(@f)$($program --complete \"${(@)words[1,CURRENT]}\" 2>/dev/null)}\")\n"
	     "\tcompadd -S '' -- ${(M)found:#*=}\n"
	     "\tcompadd -- ${found:#*=}\n"
	     "\t_files\n"
	     "}\n"
	     "local -a known\nknown=(");
	for (const struct hr_command *c = hr_commands; c->name != NULL; c++) {
		printf("\t'%s:", c->name);
		put_quoted(c->what);
		puts("'");
	}
	puts(")\nif (( CURRENT == 2 )); then\n\t_describe command known\n\treturn\nfi\n"
	     "local program=$words[1] command=$words[2]\nshift words\n(( CURRENT-- ))\n"
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
	printf(" -l %s%s", o->name, o->arg == NULL ? "" : o->values == NULL ? " -r" : " -x");
	if (o->arg != NULL && o->values != NULL) {
		fputs(" -a '", stdout);
		put_values(o);
		putchar('\'');
	}
	fputs(" -d '", stdout);
	put_quoted(o->help);
	puts("'");
}

void hr_completions_fish(void)
{
	puts("function __headrace_operands\n"
	     "\tset -l words (commandline -opc)\n"
	     "\t$words[1] --complete $words[2..-1] (commandline -ct) 2>/dev/null\n"
	     "end");
	for (const struct hr_command *c = hr_commands; c->name != NULL; c++) {
		printf("complete -c headrace -n __fish_use_subcommand -f -a %s -d '", c->name);
		put_quoted(c->what);
		puts("'");
		for (const struct hr_option *o = c->options; o->name != NULL; o++)
			put_fish_option(c, o);
		if (strcmp(c->name, "run") != 0)
			printf("complete -c headrace -n '__fish_seen_subcommand_from %s' -a "
			       "'(__headrace_operands)'\n",
			       c->name);
	}
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/commands.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/sheet.h"

#define HELP_WIDTH  96
#define MANY_TOPICS 20u

const struct hr_command hr_commands[] = {
#define HR_COMMAND(id, name, synopsis, what, about, title, topics)                                 \
	{name, hr_##id##_main, hr_##id##_option_table, synopsis, what, about, title, topics},
#include "cli/commands.def"
#undef HR_COMMAND
    {NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL},
};

const struct hr_variable hr_variables[] = {
#define HR_VARIABLE(names, commands, what) {names, commands, what},
#include "cli/variables.def"
#undef HR_VARIABLE
    {NULL, NULL, NULL},
};

static void print_wrapped(const char *text)
{
	for (size_t n; *text != '\0'; text += n + (text[n] == ' ')) {
		n = hr_sheet_words(text, HELP_WIDTH);
		printf("%.*s\n", (int)n, text);
	}
}

static void print_topic(const char *name, const char *about, size_t n)
{
	printf("  %-12s %.*s\n", name, (int)n, about);
}

/* Prints the names of the variables, without their texts, because the help must fit a screen. */
static void print_variables(const char *command)
{
	char text[512];
	size_t at = (size_t)snprintf(text, sizeof(text), "environment (see headrace(1)):");
	const char *comma = "";

	for (const struct hr_variable *v = hr_variables; v->names != NULL; v++) {
		if (strstr(v->commands, command) == NULL || at >= sizeof(text))
			continue;
		at += (size_t)snprintf(text + at, sizeof(text) - at, "%s %s", comma, v->names);
		comma = ",";
	}
	if (comma[0] == '\0')
		return;
	putchar('\n');
	print_wrapped(text);
}

static char topic_names[1024];
static unsigned n_topics;

static void add_topic_name(const char *name, const char *about, size_t n)
{
	size_t at = strlen(topic_names);

	(void)about;
	(void)n;
	snprintf(topic_names + at, sizeof(topic_names) - at, "%s%s", at > 0 ? " " : "", name);
	n_topics++;
}

/* Prints the topics with their texts or, if the help would not fit a screen, only their names. */
static void print_topics(const struct hr_command *c)
{
	if (c->topics == NULL)
		return;
	topic_names[0] = '\0';
	n_topics = 0;
	c->topics(add_topic_name);
	printf("\n%s:\n", c->topics_title);
	if (n_topics > MANY_TOPICS)
		print_wrapped(topic_names);
	else
		c->topics(print_topic);
}

int hr_command_help(const char *name)
{
	const struct hr_command *c = hr_commands;

	while (strcmp(c->name, name) != 0)
		c++;
	printf("usage: headrace %s %s\n\n", c->name, c->synopsis);
	print_wrapped(c->about);
	puts("\noptions:");
	hr_options_print(c->options);
	print_variables(c->name);
	print_topics(c);
	return EXIT_SUCCESS;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* config_help.c - the keys of a table as text: --help and the man page */
#include "common/config.h"

#include <string.h>

#define WIDTH	    100
#define COLUMN_MOST 32 /* explanations start before this column; longer flags get their own line */

static size_t flag_and_value(const struct hr_config_key *key, char *ret, size_t bytes)
{
	const char *value = key->value_name;
	size_t n = hr__config_flag(key, ret, bytes);

	if (!value && key->type == HR_CONFIG_CHOICE)
		value = key->choices;
	if (!value || n >= bytes)
		return n;
	n += (size_t)snprintf(ret + n, bytes - n, " %s", value);
	if (value == key->choices)
		for (char *c = strchr(ret, ' ') + 1; *c != '\0'; c++)
			if (*c == ' ')
				*c = '|';
	return n;
}

static void put_default(const struct hr_config_key *key, char *ret, size_t bytes)
{
	*ret = '\0';
	if (key->otherwise && key->otherwise[0] != '\0')
		snprintf(ret, bytes, " (default: %s)", key->otherwise);
}

static size_t put_words(const char *text, size_t at, size_t column, FILE *to)
{
	while (*text != '\0') {
		size_t n = strcspn(text, " ");

		if (at > column && at + 1 + n > WIDTH) {
			fprintf(to, "\n%*s", (int)column, "");
			at = column;
		} else if (at > column) {
			putc(' ', to);
			at++;
		}
		fwrite(text, 1, n, to);
		at += n;
		text += n;
		text += strspn(text, " ");
	}
	return at;
}

void hr_config_help(const struct hr_config_key *keys, size_t n, FILE *to)
{
	char left[160], otherwise[256];
	size_t column = 0;

	for (size_t i = 0; i < n; i++) {
		size_t length = flag_and_value(&keys[i], left, sizeof(left)) + 4;

		if (length > column && length <= COLUMN_MOST)
			column = length;
	}
	for (size_t i = 0; i < n; i++) {
		size_t at;

		flag_and_value(&keys[i], left, sizeof(left));
		put_default(&keys[i], otherwise, sizeof(otherwise));
		at = (size_t)fprintf(to, "  %s", left);
		if (at + 2 > column)
			fprintf(to, "\n%*s", (int)column, "");
		else
			fprintf(to, "%*s", (int)(column - at), "");
		at = put_words(keys[i].help, column, column, to);
		put_words(otherwise + (otherwise[0] == ' '), at, column, to);
		putc('\n', to);
	}
}

void hr_config_roff(const char *text, FILE *to)
{
	if (*text == '.' || *text == '\'')
		fputs("\\&", to);
	for (; *text != '\0'; text++) {
		if (*text == '\\')
			fputs("\\e", to);
		else if (*text == '-')
			fputs("\\-", to);
		else
			putc(*text, to);
	}
}

void hr_config_man(const struct hr_config_key *keys, size_t n, bool file, FILE *to)
{
	char left[160], otherwise[256];

	for (size_t i = 0; i < n; i++) {
		char *value;

		flag_and_value(&keys[i], left, sizeof(left));
		value = strchr(left, ' ');
		if (value)
			*value++ = '\0';
		fputs(".TP\n\\fB", to);
		hr_config_roff(left, to);
		fputs("\\fR", to);
		if (value) {
			fputs(" \\fI", to);
			hr_config_roff(value, to);
			fputs("\\fR", to);
		}
		if (file) {
			fputs(", \\fB", to);
			hr_config_roff(keys[i].name, to);
			fputs("\\fR in the file", to);
		}
		putc('\n', to);
		put_default(&keys[i], otherwise, sizeof(otherwise));
		hr_config_roff(keys[i].help, to);
		hr_config_roff(otherwise, to);
		if (keys[i].fixed && file)
			fputs(" A change needs a restart.", to);
		putc('\n', to);
	}
}

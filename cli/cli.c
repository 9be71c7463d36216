/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/cli.h"

#include <errno.h>
#include <ftw.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/near.h"
#include "common/text.h"

void hr_report(const char *format, ...)
{
	char *text = NULL;
	va_list args;

	va_start(args, format);
	if (vasprintf(&text, format, args) < 0)
		text = NULL;
	va_end(args);
	if (text != NULL)
		hr_text_print(stderr, "headrace: %s\n", text);
	free(text);
}

const char *hr_getenv(const char *name)
{
	return hr_text_or_null(getenv(name));
}

const char *hr_temporary(void)
{
	const char *folder = hr_getenv("TMPDIR");

	return folder != NULL ? folder : "/tmp";
}

char *hr_temporary_folder(const char *name)
{
	char *path;

	if (asprintf(&path, "%s/headrace-%s-XXXXXX", hr_temporary(), name) < 0)
		return NULL;
	if (mkdtemp(path) != NULL)
		return path;
	free(path);
	return NULL;
}

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
	(void)st;
	(void)type;
	(void)ftw;
	return remove(path) < 0 && errno != ENOENT ? -1 : 0;
}

void hr_remove_tree(const char *path)
{
	nftw(path, remove_one, 8, FTW_DEPTH | FTW_PHYS);
}

static const struct hr_option *find_long(const struct hr_option *table, const char *name,
					 size_t bytes)
{
	for (; table->name != NULL; table++)
		if (strncmp(table->name, name, bytes) == 0 && table->name[bytes] == '\0')
			return table;
	return NULL;
}

static const struct hr_option *find_short(const struct hr_option *table, char letter)
{
	for (; table->name != NULL; table++)
		if (table->id == letter)
			return table;
	return NULL;
}

/* Reports an unknown option. For --NAME=VALUE, the message shows only --NAME. */
static int report_no_option(const struct hr_option *table, const char *word)
{
	char typed[HR_NEAR_BYTES], name[HR_NEAR_BYTES];
	struct hr_near near = hr_near(typed);

	snprintf(typed, sizeof(typed), "%.*s", (int)strcspn(word, "="), word);
	for (; table->name != NULL; table++) {
		snprintf(name, sizeof(name), "--%s", table->name);
		if (typed[1] == '-')
			hr_near_add(&near, name);
	}
	hr_report("no option %s%s", hr_near_text(&near).s,
		  near.best[0] == '\0' ? HR_HINT "--help lists the options" : "");
	return HR_OPTION_BAD;
}

bool hr_option_needs_value(const struct hr_option *o)
{
	return o->arg != NULL && o->arg[0] != '[';
}

int hr_option_next(struct hr_options *o)
{
	const struct hr_option *option;
	const char *word = o->next < o->argc ? o->argv[o->next] : NULL, *rest;

	o->value = NULL;
	if (word == NULL || word[0] != '-' || word[1] == '\0' || strncmp(word, "-- ", 3) == 0)
		return HR_OPTION_END;
	o->next++;
	if (strcmp(word, "--") == 0)
		return HR_OPTION_END;
	if (word[1] == '-') {
		size_t bytes = strcspn(word + 2, "=");

		option = find_long(o->table, word + 2, bytes);
		rest = word[2 + bytes] == '=' ? word + 3 + bytes : NULL;
	} else {
		option = find_short(o->table, word[1]);
		rest = word[2] != '\0' ? word + 2 : NULL;
	}
	if (option == NULL)
		return report_no_option(o->table, word);
	if (option->arg == NULL && rest != NULL) {
		hr_report("--%s takes no value", option->name);
		return HR_OPTION_BAD;
	}
	if (hr_option_needs_value(option) && rest == NULL) {
		if (o->next >= o->argc) {
			hr_report("--%s needs a value: --%s %s", option->name, option->name,
				  option->arg);
			return HR_OPTION_BAD;
		}
		rest = o->argv[o->next++];
	}
	o->value = option->id == HR_OPTION_JSON ? "json" : rest;
	if (option->id == HR_OPTION_FORMAT && o->value != NULL &&
	    hr_option_word(option->name, option->values, o->value) < 0)
		return HR_OPTION_BAD;
	return option->id == HR_OPTION_JSON ? HR_OPTION_FORMAT : option->id;
}

bool hr_option_store(void *self, int id, const char *value)
{
	void *member;

	if (id < HR_OPTION_TEXTS)
		return false;
	member = (char *)self + id % HR_OPTION_TEXTS;
	if (id >= HR_OPTION_FLAGS)
		*(bool *)member = true;
	else
		*(const char **)member = value;
	return true;
}

bool hr_option_is_json(const char *format)
{
	return strcmp(format, "json") == 0;
}

int hr_option_wrong(const char *name, const char *expected, const char *value)
{
	hr_report("--%s must be %s, not %s", name, expected, hr_near_quoted(value).s);
	return -1;
}

int hr_option_time(const char *name, const char *expected, const char *value, uint64_t *ret_ns)
{
	if (hr_text_parse_duration(value, ret_ns) == 0)
		return 0;
	return hr_option_wrong(name, expected, value);
}

int hr_option_number(const char *name, const char *expected, const char *value, uint64_t least,
		     uint64_t most, uint64_t *ret)
{
	if (hr_text_parse_uint(value, most, ret) == 0 && *ret >= least)
		return 0;
	return hr_option_wrong(name, expected, value);
}

int hr_option_wrong_word(const char *name, const char *words, const char *value)
{
	struct hr_near near = hr_near(value);
	char list[512] = "";
	size_t at = 0;

	hr_near_add_list(&near, words);
	for (const char *w = words; *w != '\0' && at < sizeof(list); w += *w == ' ') {
		int n = (int)strcspn(w, " ");
		const char *comma = w == words ? "" : w[n] == '\0' ? " or " : ", ";

		at += (size_t)snprintf(list + at, sizeof(list) - at, "%s%.*s", comma, n, w);
		w += n;
	}
	hr_report("--%s must be %s, not %s", name, list, hr_near_text(&near).s);
	return -1;
}

int hr_option_word(const char *name, const char *words, const char *value)
{
	int index = 0;

	for (const char *w = words; *w != '\0'; index++) {
		size_t n = strcspn(w, " ");

		if (strlen(value) == n && memcmp(w, value, n) == 0)
			return index;
		w += n + (w[n] == ' ');
	}
	return hr_option_wrong_word(name, words, value);
}

void hr_options_print(const struct hr_option *table)
{
	for (; table->name != NULL; table++) {
		char left[64];

		snprintf(left, sizeof(left), "%s%c%s--%s%s%s", table->id < 128 ? "-" : " ",
			 table->id < 128 ? table->id : ' ', table->id < 128 ? ", " : "  ",
			 table->name, hr_option_needs_value(table) ? " " : "",
			 table->arg != NULL ? table->arg : "");
		printf("  %-30s %s\n", left, table->help);
	}
}

static char *part_at(const char *dir, const char *below, const char *name)
{
	char *path, *real;

	if (asprintf(&path, "%s/%s%s", dir, below, name) < 0)
		return NULL;
	real = access(path, R_OK) == 0 ? realpath(path, NULL) : NULL;
	free(path);
	return real;
}

char *hr_part_find(const char *name)
{
	static const char *const below[] = {"",
					    "../",
					    "../daemon/",
					    "../shim/",
					    "../libexec/headrace/",
					    "../lib/headrace/",
					    "../lib64/headrace/",
					    "../sbin/"};
	const char *libexec = getenv("HEADRACE_LIBEXEC");
	char dir[4096], *found = NULL, *slash;
	ssize_t n = readlink("/proc/self/exe", dir, sizeof(dir) - 1);

	if (libexec != NULL)
		found = part_at(libexec, "", name);
	if (n <= 0 || found != NULL)
		return found;
	dir[n] = '\0';
	slash = strrchr(dir, '/');
	*slash = '\0';
	for (size_t i = 0; found == NULL && i < sizeof(below) / sizeof(below[0]); i++)
		found = part_at(dir, below[i], name);
	return found;
}

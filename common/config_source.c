/* SPDX-License-Identifier: Apache-2.0 */
/* config_source.c - reads the configuration of a daemon, at its start and at SIGHUP */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/config.h"
#include "common/text.h"

/* Reports each line of `error`, and frees `error`. If it is NULL, reports r. */
static int report_errors(const struct hr_config_source *from, char *error, int r)
{
	char *rest = error, *line;

	if (!error)
		from->report(strerrordesc_np(-r));
	while ((line = strsep(&rest, "\n")) != NULL)
		from->report(line);
	free(error);
	return r;
}

/* Returns how many arguments --config or --check-config at argv[i] takes. 0: another flag. */
static int file_flag(const struct hr_config_source *from, int i, const char **ret_file)
{
	const char *word = from->argv[i];

	if (strcmp(word, "--check-config") == 0)
		return 1;
	if (strncmp(word, "--config=", 9) == 0) {
		*ret_file = word + 9;
		return 1;
	}
	if (strcmp(word, "--config") != 0)
		return 0;
	*ret_file = i + 1 < from->argc ? from->argv[i + 1] : "";
	return 2;
}

static int read_file(const struct hr_config_source *from, void *config)
{
	const char *named = NULL;
	char *error = NULL;
	int r;

	for (int i = 0; i < from->argc; i++) {
		int words = file_flag(from, i, &named);

		i += words > 0 ? words - 1 : 0;
	}
	if (named && named[0] == '\0') {
		from->report("--config needs a file");
		return -EINVAL;
	}
	if (!named && access(from->file, F_OK) < 0 && errno == ENOENT)
		return 0;
	r = hr_config_file(from->keys, from->n, config, named ? named : from->file,
			   hr_config_asks_check(from) ? NULL : from->report, &error);
	return r < 0 ? report_errors(from, error, r) : 0;
}

static int read_flags(const struct hr_config_source *from, void *config)
{
	for (int i = 0; i < from->argc;) {
		char *error = NULL;
		const char *file;
		int words = file_flag(from, i, &file), r;

		i += words;
		if (words > 0)
			continue;
		r = hr_config_flag(from->keys, from->n, config, from->argc, from->argv, &i, &error);
		if (r == -ENOENT)
			hr_text_fail(r, &error, "unknown option: %s (see %s)", from->argv[i],
				     from->help);
		if (r < 0)
			/* stop, because the next argument may be the value of this flag */
			return report_errors(from, error, -EINVAL);
	}
	return 0;
}

bool hr_config_asks_check(const struct hr_config_source *from)
{
	for (int i = 0; i < from->argc; i++)
		if (from->argv[i] && strcmp(from->argv[i], "--check-config") == 0)
			return true;
	return false;
}

int hr_config_load(const struct hr_config_source *from, void *config)
{
	int r = hr_config_init(from->keys, from->n, config), flags;

	if (r < 0)
		return report_errors(from, NULL, r);
	r = read_file(from, config);
	flags = read_flags(from, config);
	return r < 0 ? r : flags;
}

bool hr_config_rules(const struct hr_config_rule *rules, size_t n, void (*report)(const char *text))
{
	bool good = true;

	for (size_t i = 0; i < n; i++) {
		if (rules[i].broken)
			report(rules[i].text);
		good &= !rules[i].broken;
	}
	return good;
}

static bool config_source_same(const struct hr_config_key *key, const void *a, const void *b)
{
	if (key->type == HR_CONFIG_TEXT || key->type == HR_CONFIG_LIST) {
		const char *one = *(char *const *)a, *other = *(char *const *)b;

		return strcmp(one ? one : "", other ? other : "") == 0;
	}
	return memcmp(a, b, hr__config_size(key->type)) == 0;
}

void hr_config_keep_fixed(const struct hr_config_key *keys, size_t n, void *old, void *fresh,
			  void (*report)(const char *text))
{
	for (size_t i = 0; i < n; i++) {
		char *a = (char *)old + keys[i].offset, *b = (char *)fresh + keys[i].offset;
		char other[sizeof(uint64_t)], *text = NULL;

		if (!keys[i].fixed || config_source_same(&keys[i], a, b))
			continue;
		hr_text_fail(0, &text, "%s: the change needs a restart", keys[i].name);
		report(text ? text : keys[i].name);
		free(text);
		memcpy(other, a, hr__config_size(keys[i].type));
		memcpy(a, b, hr__config_size(keys[i].type));
		memcpy(b, other, hr__config_size(keys[i].type));
	}
}

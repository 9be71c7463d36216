/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/run/run.h"

#include <errno.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/cli.h"
#include "common/text.h"
#include "proto/abi.h"

static bool is_relative(const char *pattern, size_t n)
{
	return n > 0 && strchr("/*?", pattern[0]) == NULL;
}

/* Skips leading "./" and "../" of the pattern. Each "../" removes a folder from *cwd_bytes. */
static const char *skip_dots(const char *pattern, const char *cwd, size_t *cwd_bytes)
{
	for (;; pattern += strspn(pattern, "/")) {
		if (strncmp(pattern, "./", 2) == 0) {
			pattern++;
		} else if (strncmp(pattern, "../", 3) == 0) {
			pattern += 2;
			while (*cwd_bytes > 0 && cwd[--*cwd_bytes] != '/')
				;
		} else {
			return pattern;
		}
	}
}

static void put_pattern(FILE *out, const char *pattern, size_t n, const char *cwd)
{
	size_t cwd_bytes = strcmp(cwd, "/") == 0 ? 0 : strlen(cwd);
	const char *rest;

	if (!is_relative(pattern, n)) {
		fwrite(pattern, 1, n, out);
		return;
	}
	rest = skip_dots(pattern, cwd, &cwd_bytes);
	n -= (size_t)(rest - pattern);
	fwrite(cwd, 1, cwd_bytes, out);
	if (n == 1 && rest[0] == '.')
		return; /* the pattern is the working directory */
	fputc('/', out);
	fwrite(rest, 1, n, out);
}

static bool any_relative(const char *list)
{
	for (; *list != '\0'; list += list[0] == ',') {
		size_t n = strcspn(list, ",");

		if (is_relative(list, n))
			return true;
		list += n;
	}
	return false;
}

int hr_filter_absolute(const char *list, char **ret)
{
	char cwd[PATH_MAX] = "";
	size_t bytes;
	FILE *out;

	if (any_relative(list) && getcwd(cwd, sizeof(cwd)) == NULL)
		return -errno;
	if (strpbrk(cwd, ",*?") != NULL)
		return -EINVAL;
	out = open_memstream(ret, &bytes);
	if (out == NULL)
		return -ENOMEM;
	for (;;) {
		size_t n = strcspn(list, ",");

		put_pattern(out, list, n, cwd);
		if (list[n] == '\0')
			break;
		fputc(',', out);
		list += n + 1;
	}
	return fclose(out) == 0 ? 0 : -ENOMEM;
}

static void filters_count(const char *list, uint64_t *patterns, uint64_t *bytes)
{
	while (list != NULL && *list != '\0') {
		size_t n = strcspn(list, ",");

		*patterns += n > 0;
		*bytes += n;
		list += n + (list[n] == ',');
	}
}

int hr_filter_check(const char *option, const char *variable, const char *const *lists)
{
	uint64_t patterns = 0, bytes = 0;

	filters_count(getenv(variable), &patterns, &bytes);
	for (; *lists != NULL; lists++)
		filters_count(*lists, &patterns, &bytes);
	if (patterns <= HR_FILTER_PATTERNS && bytes <= HR_FILTER_BYTES)
		return 0;
	hr_report(
	    "%s and %s are too long: %s patterns with %s in all, the limits are %s and %s" HR_HINT
	    "list folders, or use globs",
	    option, variable, hr_text_count(patterns).s, hr_text_size(bytes).s,
	    hr_text_count(HR_FILTER_PATTERNS).s, hr_text_size(HR_FILTER_BYTES).s);
	return -E2BIG;
}

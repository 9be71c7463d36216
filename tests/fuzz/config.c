/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A configuration file, and the same bytes as flags, one a line. Whatever is in them, what was set before is there, and there is a
 * text for people when they are refused.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "common/config.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);

struct config {
	char *text, *list;
	uint64_t bytes, time, number;
	bool flag;
	unsigned choice;
};

#define AT(field) offsetof(struct config, field)
static const struct hr_config_key keys[] = {
    {"text", HR_CONFIG_TEXT, false, AT(text), "V", NULL, "Help.", NULL},
    {"list", HR_CONFIG_LIST, false, AT(list), "V", "a", "Help.", NULL},
    {"bytes", HR_CONFIG_BYTES, false, AT(bytes), "V", "1", "Help.", NULL},
    {"time", HR_CONFIG_DURATION, false, AT(time), "V", "1s", "Help.", NULL},
    {"number", HR_CONFIG_NUMBER, false, AT(number), "V", "1", "Help.", NULL},
    {"flag", HR_CONFIG_FLAG, false, AT(flag), "V", "no", "Help.", NULL},
    {"choice", HR_CONFIG_CHOICE, false, AT(choice), "V", "two", "Help.", "one two"},
};
#define N (sizeof(keys) / sizeof(keys[0]))

static void warn(const char *text)
{
	if (!strstr(text, "unknown key"))
		abort();
}

static void check(int r, char *error)
{
	if ((r == -EINVAL) != (error != NULL) || (r < 0 && r != -EINVAL && r != -ENOENT))
		abort();
	free(error);
}

static void as_file(struct config *c, const uint8_t *data, size_t bytes, bool forgiving)
{
	char path[64], *error = NULL;
	int fd = memfd_create("config", MFD_CLOEXEC), r;

	if (fd < 0 || write(fd, data, bytes) != (ssize_t)bytes)
		abort();
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	r = hr_config_file(keys, N, c, path, forgiving ? warn : NULL, &error);
	check(r, error);
	close(fd);
}

static void as_flags(struct config *c, const uint8_t *data, size_t bytes)
{
	char *text = malloc(bytes + 1), *argv[64], *at = text, *error = NULL;
	int argc = 0, r;

	if (!text)
		return;
	memcpy(text, data, bytes);
	text[bytes] = '\0';
	while (argc < 64 && at)
		argv[argc++] = strsep(&at, "\n");
	for (int i = 0; i < argc;) {
		int before = i;

		error = NULL;
		r = hr_config_flag(keys, N, c, argc, argv, &i, &error);
		check(r, error);
		if ((r == 0) != (i > before) || i > argc)
			abort();
		if (r < 0)
			i++;
	}
	free(text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
	struct config c;

	if (hr_config_init(keys, N, &c) < 0)
		abort();
	as_file(&c, data, bytes, false);
	as_file(&c, data, bytes, true);
	as_flags(&c, data, bytes);
	if (!c.list || c.choice > 1)
		abort();
	hr_config_done(keys, N, &c);
	return 0;
}

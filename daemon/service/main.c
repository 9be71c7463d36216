/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/text.h"
#include "daemon/service/service.h"

#define EXIT_USAGE 2

static void help(void)
{
	puts("Usage: headraced service [OPTION...]\n\n"
	     "The service of a node: records all jobs on it. systemd starts it; a person needs\n"
	     "`headrace run` instead.\n\n"
	     "Example: headraced service --spool /var/spool/headrace --collectors "
	     "tcp://collector\n\n"
	     "  --config FILE      read keys from there (" HR_SERVICE_CONFIG_FILE
	     ", if it is there)\n"
	     "  --check-config     say what is wrong, and end");
	hr_config_help(hr_service_keys, hr_service_n_keys, stdout);
}

static int say(const char *error)
{
	fprintf(stderr, "headraced: %s\n", error ? error : "no memory");
	return -EINVAL;
}

static void warn(const char *text)
{
	fprintf(stderr, "<4>%s\n", text);
}

/* The file first: flags win. Unknown keys are mistakes where the file is checked, and warnings where it is used. */
static int read_file(struct hr_service_config *c, const char *path, bool check)
{
	char *error = NULL;
	int r;

	if (!path && access(HR_SERVICE_CONFIG_FILE, F_OK) < 0)
		return 0;
	r = hr_config_file(hr_service_keys, hr_service_n_keys, c,
			   path ? path : HR_SERVICE_CONFIG_FILE, check ? NULL : warn, &error);
	if (r < 0)
		say(error);
	free(error);
	return r;
}

static int read_flags(struct hr_service_config *c, int argc, char **argv)
{
	char *error = NULL;
	int r = 0;

	for (int i = 1; i < argc && r == 0;) {
		if (strcmp(argv[i], "--config") == 0) {
			i += 2;
		} else if (strcmp(argv[i], "--check-config") == 0) {
			i++;
		} else {
			r = hr_config_flag(hr_service_keys, hr_service_n_keys, c, argc, argv, &i,
					   &error);
			if (r == -ENOENT)
				fprintf(
				    stderr,
				    "headraced: %s is no option: see headraced service --help\n",
				    argv[i]);
			else if (r < 0)
				say(error);
		}
	}
	free(error);
	return r;
}

int hr_service_main(int argc, char **argv)
{
	struct hr_service_config c = {0};
	const char *path = NULL;
	char *error = NULL;
	bool check = false;
	int r, status = EXIT_USAGE;

	for (int i = 1; i < argc; i++) {
		if (strcmp(argv[i], "--help") == 0) {
			help();
			return EXIT_SUCCESS;
		}
		check = check || strcmp(argv[i], "--check-config") == 0;
		if (strcmp(argv[i], "--config") == 0) {
			if (++i == argc) {
				say("--config needs a file");
				return EXIT_USAGE;
			}
			path = argv[i];
		}
	}
	r = hr_config_init(hr_service_keys, hr_service_n_keys, &c);
	if (r == 0)
		r = read_file(&c, path, check);
	if (r == 0)
		r = read_flags(&c, argc, argv);
	if (r == 0) {
		r = hr_service_config_check(&c, &error);
		if (r < 0)
			say(error);
		free(error);
	}
	if (r == 0)
		status = check ? EXIT_SUCCESS : hr_service_run(&c);
	hr_config_done(hr_service_keys, hr_service_n_keys, &c);
	return status;
}

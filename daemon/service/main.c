/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/log.h"
#include "daemon/service/service.h"

#define EXIT_USAGE 2

static void help(void)
{
	puts("Usage: headraced service [OPTION...]\n\n"
	     "Records all jobs of this node. systemd starts it; to record a single program, use\n"
	     "`headrace run`.\n\n"
	     "Example: headraced service --spool /var/spool/headrace --collectors "
	     "tcp://collector\n\n"
	     "  --config FILE      read this configuration file (default: " HR_SERVICE_CONFIG_FILE
	     ", if it exists)\n"
	     "  --check-config     check configuration file and options, report mistakes, and end");
	hr_config_help(hr_service_keys, hr_service_n_keys, stdout);
}

static void log_mistake(const char *text)
{
	hr_log(HR_LOG_ERROR, "%s", text);
}

int hr_service_main(int argc, char **argv)
{
	const struct hr_config_source from = {
	    .keys = hr_service_keys,
	    .n = hr_service_n_keys,
	    .file = HR_SERVICE_CONFIG_FILE,
	    .argc = argc - 1,
	    .argv = argv + 1,
	    .help = "headraced service --help",
	    .report = log_mistake,
	};
	struct hr_service_config config = {0};
	int status = EXIT_USAGE;
	bool good;

	for (int i = 1; i < argc; i++) {
		if (strcmp(argv[i], "--help") == 0) {
			help();
			return EXIT_SUCCESS;
		}
	}
	good = hr_config_load(&from, &config) == 0;
	good &= hr_service_config_check(&config, log_mistake);
	if (hr_config_asks_check(&from)) {
		bool works = hr_service_check(&config, log_mistake);

		if (good)
			status = works ? EXIT_SUCCESS : EXIT_FAILURE;
	} else if (good) {
		hr_service_config_settle(&config);
		status = hr_service_run(&from, &config);
	}
	hr_config_done(hr_service_keys, hr_service_n_keys, &config);
	return status;
}

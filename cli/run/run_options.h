/* SPDX-License-Identifier: Apache-2.0 */
/* run_options.h - parses and checks the options of `headrace run`. Strings point into argv. */
#ifndef HEADRACE_CLI_RUN_RUN_OPTIONS_H
#define HEADRACE_CLI_RUN_RUN_OPTIONS_H

#include <stdbool.h>
#include <stdint.h>

#include "daemon/control/private.h"

#define HR_RUN_FILTERS 256u

struct hr_run_options {
	const char *store, *job, *summary, *report;
	const char *collectors; /* -o tcp://...; then `store` is NULL */
	const char *ranks, *local_ranks;
	const char *functions; /* globs of --functions; NULL: not given */
	bool no_stacks;
	const char *labels[HR_PRIVATE_LABELS + 1];
	const char *exclude[HR_RUN_FILTERS + 1], *include[HR_RUN_FILTERS + 1];
	int level; /* enum hr_level */
	uint64_t max_bytes, linger_ns, drain_ns;
	bool best_effort, full_cmdline, probes;
	bool idle;   /* record nothing: CMD calls headrace.record() */
	bool attach; /* record the parent process, which calls headrace.record() */
	char **command;
};

/* Returns 0; 1: help was printed; a negative number: a mistake was reported. */
int hr_run_options_parse(int argc, char **argv, struct hr_run_options *ret);

#endif

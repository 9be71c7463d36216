/* SPDX-License-Identifier: Apache-2.0 */
/*
 * run_uplink.h - `headrace run -o tcp://...`: makes the spool, and reports what was sent
 *
 * headraced records into a spool of this user, and sends from it while the job runs. struct
 * hr_run_uplink owns its strings; hr_run_uplink_done frees them.
 */
#ifndef HEADRACE_CLI_RUN_RUN_UPLINK_H
#define HEADRACE_CLI_RUN_RUN_UPLINK_H

#include "cli/run/link.h"
#include "cli/summary/summary.h"
#include "net/tls_find.h"

struct hr_run_uplink {
	const char *collectors; /* value of -o; NULL: the data stays in a store */
	char first[300];
	char *spool;
	struct hr_tls_paths tls; /* certificate and key, if a collector needs them */
	uint64_t spool_bytes;
};

/* Checks the value of -o. Returns 0: collectors; 1: a folder; -EINVAL: a reported mistake. */
int hr_run_uplink_check(const char *store);

/*
 * Makes the spool (HEADRACE_SPOOL, HEADRACE_SPOOL_SIZE) and finds certificates (net/tls_find.h).
 * Reports mistakes. `node` becomes a part of the name, because nodes may share the file system.
 */
int hr_run_uplink_init(const char *collectors, const char *node, struct hr_run_uplink *ret);
void hr_run_uplink_done(struct hr_run_uplink *u);

/* Reports what the summary lacks. Commands that the summary prints then query the collector. */
void hr_run_uplink_adapt(const struct hr_run_uplink *u, struct hr_summary *s);

/*
 * Call it after `left`. Sends `summary_printed`, and waits until all frames are sent, the drain
 * time is over, or a signal arrives. Then reports what was sent, or how to send the remaining
 * frames. `headraced` is the path of the program.
 */
void hr_run_uplink_drain(const struct hr_run_uplink *u, struct hr_link *link, int interrupt_fd,
			 const char *headraced);

void hr_run_uplink_report_unsent(const struct hr_run_uplink *u, const char *headraced);

#endif

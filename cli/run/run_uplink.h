/* SPDX-License-Identifier: Apache-2.0 */
/*
 * run_uplink.h - `headrace run -o tcp://...`: where the spool is, and what is said at the end about what was sent
 *
 * Purpose   The recording goes into a spool of this user, from which headraced sends it while the job runs.
 * Owner     struct hr_run_uplink owns its strings; hr_run_uplink_done frees them.
 * Threads   One: reads the environment.
 */
#ifndef HEADRACE_CLI_RUN_RUN_UPLINK_H
#define HEADRACE_CLI_RUN_RUN_UPLINK_H

#include "cli/run/link.h"
#include "cli/summary/summary.h"
#include "net/tls_find.h"

struct hr_run_uplink {
	const char *collectors;	 /* as typed; NULL: the recording stays in a store */
	char first[300];	 /* of them: the one to ask */
	char *spool;		 /* folder, made */
	struct hr_tls_paths tls; /* of the certificate, if there is one */
	uint64_t spool_bytes;
};

/* Is this -o a list of collectors, and a good one? 0; 1: it is a folder's name; -EINVAL, said. */
int hr_run_uplink_is(const char *store);

/*
 * Finds and makes the spool (HEADRACE_SPOOL, HEADRACE_SPOOL_SIZE), finds certificates (net/tls_find.h). Mistakes are said here. `node`: this
 * one's name, for a spool on a file system that nodes share.
 */
int hr_run_uplink_init(const char *collectors, const char *node, struct hr_run_uplink *ret);
void hr_run_uplink_done(struct hr_run_uplink *u);

/* The summary is of what this node has: says what it therefore cannot know, and whom to ask. */
void hr_run_uplink_fit(const struct hr_run_uplink *u, struct hr_summary *s);

/*
 * After `done`: tells the daemon that the summary was printed, waits until all is sent (its drain time is in the daemon's
 * configuration; an interrupt ends it), and says what was sent, or what remains and how to send it. `headraced`: its path.
 */
void hr_run_uplink_drain(const struct hr_run_uplink *u, struct hr_link *link, int interrupt_fd,
			 const char *headraced);

/* For a daemon that died: all that is known is where the recording is. */
void hr_run_uplink_report_unsent(const struct hr_run_uplink *u, const char *headraced);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * private_uplink.h - the spool and the uplink of one job, and notices about them
 *
 * Purpose   Connects private_worker.c and service/worker.c with the uplink (uplink.h).
 *
 *      job ends --> draining: the run prints its summary, then sends `summary_printed`
 *                   --> finished: all frames are acknowledged, no collector accepts the stream,
 *                       the time is over, or the run has ended
 *
 * Owner     The recording process. Loop thread; the uplink has its own thread.
 */
#ifndef HEADRACE_DAEMON_PRIVATE_PRIVATE_UPLINK_H
#define HEADRACE_DAEMON_PRIVATE_PRIVATE_UPLINK_H

#include "daemon/control/private.h"
#include "daemon/node/now.h"
#include "daemon/uplink/uplink.h"

struct hr_private_uplink {
	struct hr_spool *spool;
	struct hr_uplink *uplink;
	uint64_t until_ms; /* set it at the end of the job: how long the uplink still sends */
	/* Only for private_uplink.c: */
	const char *collectors;
	const struct hr_node_config *node;
	struct hr_now now;
	uint64_t reported_ms;
	bool released;
	struct hr_uplink_stats last; /* the numbers in the last report */
	/* What notices have already reported. */
	bool unreachable;
	char aside[sizeof(((struct hr_uplink_stats *)0)->aside_text)];
};

/*
 * Opens the spool and starts the uplink. If the job has no collectors, sets *ret to NULL.
 * *ret_error: malloc'ed or NULL.
 */
int hr_private_uplink_open(const struct hr_private_config *config, struct hr_private_uplink **ret,
			   char **ret_error);
void hr_private_uplink_free(struct hr_private_uplink *p); /* accepts NULL */

/* Once a second, sends what the job does (now.h), if a collector is connected. `p` may be NULL. */
void hr_private_uplink_show(struct hr_private_uplink *p, struct hr_node *node, uint64_t now_ms);

/* Writes the next notice about the connection or a refused stream. False: there is none. */
bool hr_private_uplink_next_notice(struct hr_private_uplink *p, char *ret, size_t bytes);

/* From now on, the uplink removes acknowledged frames from the spool. */
void hr_private_uplink_release(struct hr_private_uplink *p);

/*
 * Makes a report of progress every 250 ms, and at the end. Returns true if *ret is a new report,
 * whose strings are valid until the next call.
 */
bool hr_private_uplink_progress(struct hr_private_uplink *p, uint64_t now_ms,
				Headrace__Sending *ret);

#endif

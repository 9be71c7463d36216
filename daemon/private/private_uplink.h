/* SPDX-License-Identifier: Apache-2.0 */
/*
 * private_uplink.h - the spool and the uplink of a private daemon, and what its runs hear of them
 *
 * Purpose   Between private_worker.c, which knows runs, and uplink.h, which knows collectors.
 *
 *      job ends --> draining: the run prints its summary from the spool, sends `summary_printed`
 *                      +--(all acknowledged, or no collector takes it, or the drain's time is over, or the run has gone)--> finished
 *
 * Owner     The worker. Threads: the loop's; the uplink has its own.
 */
#ifndef HEADRACE_DAEMON_PRIVATE_PRIVATE_UPLINK_H
#define HEADRACE_DAEMON_PRIVATE_PRIVATE_UPLINK_H

#include "daemon/control/private.h"

struct hr_private_uplink;
struct hr_uplink_stats;

/* Opens the spool; *ret is NULL where the configuration has no collectors. On failure *ret_error, malloc'ed, says why. */
int hr_private_uplink_open(const struct hr_private_config *config, struct hr_private_uplink **ret,
			   char **ret_error);
struct hr_spool *hr_private_uplink_spool(struct hr_private_uplink *p); /* accepts NULL: NULL */
void hr_private_uplink_free(struct hr_private_uplink *p);	       /* accepts NULL */

void hr_private_uplink_stats(struct hr_private_uplink *p, struct hr_uplink_stats *ret);

/* Has this stream ended already? Then the worker before this one was killed while it was draining. */
bool hr_private_uplink_ended(const struct hr_private_config *config);

/* Something to tell the runs, once: that no collector is there, that one is, that the stream is not taken. */
bool hr_private_uplink_news(struct hr_private_uplink *p, char *ret, size_t bytes);

/* The job has ended: begins to drain, until then at most. */
void hr_private_uplink_drain(struct hr_private_uplink *p, uint64_t until_ms);

/* Nobody needs what is acknowledged any more: it may go, now and from now on. */
void hr_private_uplink_release(struct hr_private_uplink *p);

/* Fills in the progress, a few times a second and when it is finished; its strings are valid until the next call. False: not yet. */
bool hr_private_uplink_progress(struct hr_private_uplink *p, uint64_t now_ms,
				Headrace__Sending *ret);

#endif

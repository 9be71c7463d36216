/* SPDX-License-Identifier: Apache-2.0 */
/*
 * spool_discard.h - discards a job that no collector accepts, for example because its id belongs to
 * another user
 *
 * A stream stays if a daemon writes it, an uplink sends it, or it has a journal to replay. One
 * thread; uplinks of other processes may run.
 */
#ifndef HEADRACE_DAEMON_SPOOL_SPOOL_DISCARD_H
#define HEADRACE_DAEMON_SPOOL_SPOOL_DISCARD_H

#include "daemon/spool/spool.h"

struct hr_spool_discarded {
	unsigned streams, kept; /* number of discarded and other streams of the job */
	/* Discarded frames and events that no collector has acknowledged. */
	uint64_t frames, events;
};

/* Returns 0 (also if the job does not exist) or -errno. May set *ret_error (malloc'ed). */
int hr_spool_discard(struct hr_spool *s, const char *job, struct hr_spool_discarded *ret,
		     char **ret_error);

#endif

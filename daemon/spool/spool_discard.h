/* SPDX-License-Identifier: Apache-2.0 */
/*
 * spool_discard.h - gives up a job of a spool: for what no collector will ever take, as when its id is another user's there
 *
 * Streams that a daemon writes, that an uplink is sending, or whose journal waits to be replayed, stay.
 *
 * Threads   One; beside uplinks of other processes.
 */
#ifndef HEADRACE_DAEMON_SPOOL_SPOOL_DISCARD_H
#define HEADRACE_DAEMON_SPOOL_SPOOL_DISCARD_H

#include "daemon/spool/spool.h"

struct hr_spool_discarded {
	unsigned streams, kept;	 /* of the job: given up; not */
	uint64_t frames, events; /* that no collector has acknowledged, of the former */
};

/* 0, also when there is no such job; -errno with *ret_error, malloc'ed, perhaps. */
int hr_spool_discard(struct hr_spool *s, const char *job, struct hr_spool_discarded *ret,
		     char **ret_error);

#endif

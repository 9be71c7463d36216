/* SPDX-License-Identifier: Apache-2.0 */
/*
 * spool_discard.h - discards a job that no collector accepts, for example because its id belongs to
 * another user there
 *
 * Streams stay that a daemon writes, that an uplink sends, or whose journal is to be replayed. One
 * thread; uplinks of other processes may run.
 */
#ifndef HEADRACE_DAEMON_SPOOL_SPOOL_DISCARD_H
#define HEADRACE_DAEMON_SPOOL_SPOOL_DISCARD_H

#include "daemon/spool/spool.h"

struct hr_spool_discarded {
	unsigned streams, kept;	 /* of the job: discarded; not discarded */
	uint64_t frames, events; /* frames of the former that no collector has acknowledged */
};

/* 0, even without such a job; -errno, maybe with *ret_error, malloc'ed. */
int hr_spool_discard(struct hr_spool *s, const char *job, struct hr_spool_discarded *ret,
		     char **ret_error);

#endif

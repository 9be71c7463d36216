/* SPDX-License-Identifier: Apache-2.0 */
/* spool_internal.h - the spool's state: spool.c (streams), spool_room.c (dropping frames) */
#ifndef HEADRACE_DAEMON_SPOOL_SPOOL_INTERNAL_H
#define HEADRACE_DAEMON_SPOOL_SPOOL_INTERNAL_H

#include <pthread.h>

#include "daemon/spool/spool.h"

#define HR__SPOOL_LOCK	  "spool.lock"
#define HR__SPOOL_SECRET  "secret"
#define HR__SPOOL_SENDER  "sender"
#define HR__SPOOL_AIM	  "collectors"
#define HR__SPOOL_ACKED	  "acked"
#define HR__SPOOL_JOURNAL "journal"

struct hr_spool {
	char *path;
	int dir_fd;
	uint64_t limit_bytes, segment_bytes;
	/*
	 * The last survey of all streams. Only the appender thread (and the loop after it) uses
	 * these fields.
	 */
	uint64_t seen_bytes, seen_own_bytes;
	uint64_t seen_ms;     /* time of the survey; 0: there was none */
	pthread_mutex_t lock; /* protects the fields below */
	bool has_live;
	struct hr_spool_live live;
	struct hr_spool_stats stats;
	void (*changed)(void *arg);
	void *changed_arg;
	char *aim; /* collectors of new streams; NULL: any collector may have them */
};

/* Returns the number in the file `acked`; 0: none. */
uint64_t hr__spool_acked(int stream_dir_fd);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* appender_internal.h - the appender's state: appender.c (thread), appender_end.c (full disk) */
#ifndef HEADRACE_DAEMON_SPOOL_APPENDER_INTERNAL_H
#define HEADRACE_DAEMON_SPOOL_APPENDER_INTERNAL_H

#include <pthread.h>

#include "common/batch.h"
#include "daemon/spool/appender.h"

struct hr_appender {
	pthread_t thread;
	bool joined;
	pthread_mutex_t lock;
	pthread_cond_t given_some; /* signalled when frames were given to the thread */
	pthread_cond_t done_some;  /* signalled when the thread has stored frames */
	struct hr_out_list inbox;
	uint64_t given, done; /* number of frames and markers given, and done */
	uint64_t progress_seen;
	bool cornered; /* set by the drain thread, which has no free half of the journal */
	bool stop;
	int error;
	uint64_t stored_bytes;
	/* Only the thread uses these fields. After the thread has ended, the caller uses them. */
	struct hr_writer *writer;
	struct hr_batch_pool *pool;
	struct hr_journal *journal;
	struct hr_spool *spool; /* NULL: the store is not a spool */
	struct hr_encoder *encoder;
	Headrace__EventBatch events; /* the batch of events that was encoded last */
	ZSTD_CCtx *zstd;	     /* compresses all frames except events */
	struct hr_out_list kept;     /* frames that are not stored yet */
	uint64_t kept_bytes;
};

/* Packs a frame that is not packed yet, and frees its message and events. */
int hr__appender_pack(struct hr_appender *a, struct hr_out *o);

/* Makes room in a spool, and appends a packed frame. Returns the result of hr_writer_append. */
int hr__appender_append(struct hr_appender *a, const struct hr_out *o);

#endif

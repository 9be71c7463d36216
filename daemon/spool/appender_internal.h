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
	pthread_cond_t given_some; /* to the thread */
	pthread_cond_t done_some;  /* from the thread */
	struct hr_out_list inbox;
	uint64_t given, done; /* outs */
	uint64_t progress_seen;
	bool cornered; /* the drain thread has no free journal half */
	bool stop;
	int error;
	uint64_t stored_bytes;
	/* for the thread; for the caller once it is joined */
	struct hr_writer *writer;
	struct hr_batch_pool *pool;
	struct hr_journal *journal;
	struct hr_spool *spool; /* NULL: the store is not a spool */
	struct hr_encoder *encoder;
	Headrace__EventBatch events; /* the last encoded ones */
	ZSTD_CCtx *zstd;	     /* for frames other than events */
	struct hr_out_list kept;     /* packed, not yet stored */
	uint64_t kept_bytes;
};

/* Packs o's frame unless it is packed; frees what it was made of. */
int hr__appender_pack(struct hr_appender *a, struct hr_out *o);

/* Appends o's bytes, for which a spool first makes room. As hr_writer_append. */
int hr__appender_append(struct hr_appender *a, const struct hr_out *o);

#endif

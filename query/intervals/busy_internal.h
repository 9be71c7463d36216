/* SPDX-License-Identifier: Apache-2.0 */
/*
 * busy_internal.h - shared by busy.c (order), busy_keys.c (keys) and busy_batch.c (one batch)
 *
 * A key stands for the processes that share a row, if operations of all classes are added up. A
 * lane is a key and a class, and becomes a row. Without HR_BUSY_CLASS, each key has one lane.
 */
#ifndef HEADRACE_QUERY_INTERVALS_BUSY_INTERNAL_H
#define HEADRACE_QUERY_INTERVALS_BUSY_INTERNAL_H

#include "query/intervals/busy.h"
#include "query/intervals/spans.h"
#include "common/batch.h"

#define HR_BUSY_CLASSES ((unsigned)HR_CLASS_HOOK)
#define HR_BUSY_NO_LANE UINT8_MAX /* the class of an event that the scope excludes */

/* ---- keys ---- */
/* The rank in keys of processes that are not of the requested rank. These have no row. */
#define HR_BUSY_OTHER_RANK (-2)

struct hr_busy_key {
	const struct hr_qstream *st;
	uint64_t proc;
	int32_t rank, worker;
	/* Index and number of the streams with processes of this key, in hr_busy_keys.streams. */
	uint32_t first_stream, n_streams;
};

struct hr_busy_keys {
	struct hr_busy_key *list;
	size_t n;
	uint32_t *streams;
	size_t *first_process; /* index of each stream's first process in key_of */
	/* Key of each process. Processes that a stream does not describe share one key. */
	uint32_t *key_of;
};

/* Return whether the stream, or the batch of events, may have processes of this rank. */
bool hr__busy_stream_has(const struct hr_stream *s, int32_t rank);
bool hr__busy_batch_has(const struct hr_stream *s, const struct hr_batch_ref *b, int32_t rank);

/* Makes the keys of all streams i with used[i]. Returns 0 or -ENOMEM. */
int hr__busy_keys_make(struct hr_busy_keys *k, const struct hr_query *q,
		       const struct hr_busy_args *args, const bool *used);
void hr__busy_keys_done(struct hr_busy_keys *k);

uint32_t hr__busy_key(const struct hr_busy_keys *k, const struct hr_query *q, uint32_t stream,
		      uint64_t proc);

/* ---- one batch ---- */
struct hr_busy_sums {
	uint64_t count, dur_ns;
	int64_t first_ns, last_ns;
};

struct hr_busy_piece {
	uint32_t lane;
	uint32_t first, n; /* index and number of its united spans in hr_busy_part.spans */
	struct hr_busy_sums sums;
};

struct hr_busy_part {
	struct hr_span *spans; /* HR_BATCH_EVENTS elements */
	struct hr_busy_piece *pieces;
	size_t n_pieces, room;
	bool ready;
};

struct hr_busy_batch {
	uint32_t stream, batch;
	int64_t last_ns; /* wall clock: the latest end of an event of the batch */
	/* last_ns of the stream's next batch to be added up; INT64_MIN: none is left */
	int64_t next_last_ns;
};

struct hr_busy_lanes {
	const struct hr_busy_keys *keys;
	unsigned classes;	  /* lanes of each key: HR_BUSY_CLASSES or 1 */
	struct hr_during *during; /* NULL for hr_busy() */
	enum hr_busy_scope scope;
	uint8_t class_of_op[HR_OP_MAX];
};

/*
 * Reads a batch of events, and unites the intervals of each lane. A damaged batch has no pieces,
 * and counts for the notes. A batch with an event that ends after last_ns is damaged, because this
 * event would be added up too late. Returns 0 or -ENOMEM.
 */
int hr__busy_batch_read(struct hr_query *q, const struct hr_busy_lanes *lanes,
			const struct hr_busy_batch *batch, struct hr_busy_worker *w,
			struct hr_busy_part *ret);

void hr__busy_sums_add(struct hr_busy_sums *to, const struct hr_busy_sums *from);
#define HR_BUSY_NO_SUMS ((struct hr_busy_sums){.first_ns = INT64_MAX, .last_ns = INT64_MIN})

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * busy_internal.h - shared by busy.c (order), busy_keys.c (keys) and busy_batch.c (one batch)
 *
 * A lane is a pair of key and class, and becomes a row. Without HR_BUSY_CLASS, a key has one lane.
 */
#ifndef HEADRACE_QUERY_INTERVALS_BUSY_INTERNAL_H
#define HEADRACE_QUERY_INTERVALS_BUSY_INTERNAL_H

#include "query/intervals/busy.h"
#include "query/intervals/spans.h"
#include "common/batch.h"

#define HR_BUSY_CLASSES ((unsigned)HR_CLASS_HOOK)
#define HR_BUSY_NO_LANE UINT8_MAX /* class of a row that the scope excludes */

/* ---- keys ---- */
/* The rank of processes whose rank is not the requested one. They have no row. */
#define HR_BUSY_OTHER_RANK (-2)

struct hr_busy_key {
	const struct hr_qstream *st;
	uint64_t proc;
	int32_t rank, worker;
	/* Place in hr_busy_keys.streams: the streams that have processes of this key. */
	uint32_t first_stream, n_streams;
};

struct hr_busy_keys {
	struct hr_busy_key *list;
	size_t n;
	uint32_t *streams;
	size_t *first_process; /* where each stream begins in key_of */
	/* The key of each process. All unknown processes of a stream share a key. */
	uint32_t *key_of;
};

/*
 * Return whether the stream, or the batch, may have processes of this rank (HR_BUSY_ANY_RANK: of
 * any).
 */
bool hr__busy_stream_has(const struct hr_stream *s, int32_t rank);
bool hr__busy_batch_has(const struct hr_stream *s, const struct hr_batch_ref *b, int32_t rank);

/* Makes keys for the streams with used[i]. Returns 0 or -ENOMEM. */
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
	uint32_t first, n; /* united spans: place in hr_busy_part.spans */
	struct hr_busy_sums sums;
};

struct hr_busy_part {
	struct hr_span *spans; /* HR_BATCH_EVENTS of them */
	struct hr_busy_piece *pieces;
	size_t n_pieces, room;
	bool ready;
};

struct hr_busy_batch {
	uint32_t stream, batch;
	int64_t last_ns; /* wall clock; no event of the batch ends later */
	/* last_ns of the next batch of the stream; INT64_MIN: no batch is left */
	int64_t next_last_ns;
};

struct hr_busy_lanes {
	const struct hr_busy_keys *keys;
	unsigned classes;	  /* number of lanes of each key: HR_BUSY_CLASSES or 1 */
	struct hr_during *during; /* NULL for hr_busy(), which has no regions */
	enum hr_busy_scope scope;
	uint8_t class_of_op[HR_OP_MAX];
};

/*
 * Reads and decodes a batch, and unites its intervals. A damaged batch is counted for the notes,
 * and has no pieces. A batch with an event that ends after last_ns also counts as damaged, because
 * it would be added too late. Returns 0 or -ENOMEM.
 */
int hr__busy_batch_read(struct hr_query *q, const struct hr_busy_lanes *lanes,
			const struct hr_busy_batch *batch, struct hr_busy_worker *w,
			struct hr_busy_part *ret);

void hr__busy_sums_add(struct hr_busy_sums *to, const struct hr_busy_sums *from);
#define HR_BUSY_NO_SUMS ((struct hr_busy_sums){.first_ns = INT64_MAX, .last_ns = INT64_MIN})

#endif

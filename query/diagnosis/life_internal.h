/* SPDX-License-Identifier: Apache-2.0 */
/*
 * life_internal.h - shared by life.c (lives), marks.c (regions), loops.c (loops) and waits.c (waits
 * for a batch)
 */
#ifndef HEADRACE_QUERY_DIAGNOSIS_LIFE_INTERNAL_H
#define HEADRACE_QUERY_DIAGNOSIS_LIFE_INTERNAL_H

#include "query/diagnosis/life.h"

#define HR_UNKNOWN UINT64_MAX

/* A region of a thread. */
struct hr_mark {
	uint64_t proc;
	uint32_t tid, kind; /* enum hr_region_kind, or HR_MARK_... */
	int64_t from, to;
	uint64_t step, epoch;
	uint64_t loader, batch; /* of a wait or fetch, else HR_UNKNOWN */
	uint64_t workers;	/* of a wait: number of workers; of a fetch: its worker's number */
	uint64_t prefetch;   /* of a wait: batches that each worker prefetches; else HR_UNKNOWN */
	uint64_t batch_size; /* of a wait: samples in a batch; else HR_UNKNOWN */
	/* Of a wait: what it adds to hr_loop.between_cpu_ns, between_ns and others_cpu_ns. */
	uint64_t before_cpu_ns, before_ns, others_cpu_ns;
	/* during a wait or fetch; for an optimizer's step: during the since_ns before its end */
	uint64_t cpu_ns, major_faults, core_wait_ns, sleep_ns, network_ns, lock_ns;
	/* Of HR_MARK_BUSY: how busy the accelerator was in the last since_ns. */
	uint64_t since_ns, busy_percent;
	bool open;   /* the region had not ended, so it has no args */
	bool added;  /* several short regions, which the recording added up: see hr_added */
	bool end;    /* a wait that returned no batch */
	bool hidden; /* a wait at whose end the accelerator still worked */
	bool persistent, iterable; /* of a wait: properties of its loader */
};
/*
 * Regions of kind RANGE (iter() of a DataLoader, backward(), a call of torch.distributed), and
 * marks.
 */
#define HR_MARK_CREATES	   UINT32_MAX
#define HR_MARK_BACKWARD   (UINT32_MAX - 1)
#define HR_MARK_COLLECTIVE (UINT32_MAX - 2)
#define HR_MARK_BUSY	   (UINT32_MAX - 3) /* how busy an accelerator was */

/* Positions in the lists below for the next block. Blocks are made in the order of time. */
struct hr_life_place {
	size_t step, epoch, edge;
	/* Start of the first loop or step, end of the last loop or step. */
	int64_t first_loop, last_loop;
};

/* A batch that a life's worker made. */
struct hr_made {
	uint64_t loader, batch;
	int64_t from;
	uint32_t fetch;
};

/*
 * Reads the marks of a stream, and makes a life from the marks of each training process. A thread
 * uses one reader for many streams.
 */
struct hr_life_reader {
	struct hr_query *q;
	struct hr_op_scan *scan;
	struct hr_train_lives *to; /* receives the lives of the stream */
	const struct hr_scope *scope;
	uint32_t stream;
	struct hr_job_span span; /* span of the stream's job; regions outside it are left out */
	struct hr_mark *marks;	 /* sorted by process and time */
	size_t n_marks, marks_room;
	bool saves; /* the stream has regions of kind checkpoint */

	struct hr_train_life *life;
	struct hr_life_place at;
	const struct hr_mark **steps, **epochs; /* sorted by time */
	size_t n_steps, steps_room, n_epochs, epochs_room;
	int64_t *edges; /* where steps, epochs and loops begin and end, sorted by time */
	size_t n_edges, edges_room;
	struct hr_made *made; /* sorted by loader, batch and time */
	size_t n_made, made_room;
};

static inline bool hr__in_scope(const struct hr_life_reader *r, int32_t rank)
{
	return r->scope->rank == HR_ANY_RANK || r->scope->rank == rank;
}

/* marks.c: reads the marks of r->stream within r->span. -ENOMEM. */
int hr__marks_read(struct hr_life_reader *r);

/* loops.c: finds the loops of r->life, whose process has these marks. -ENOMEM. */
int hr__loops_find(struct hr_life_reader *r, const struct hr_mark *marks, size_t n);
/* The latest loop over this loader that began at or before `time`; NULL: none. */
struct hr_loop *hr__loop_at(const struct hr_life_reader *r, uint64_t loader, int64_t time);
/* The innermost loop around `time`; HR_NO_LOOP: none. */
uint32_t hr__loop_around(const struct hr_life_reader *r, int64_t time);
enum hr_phase hr__phase_at(const struct hr_life_reader *r, int64_t time, uint32_t loop);

/* waits.c: finds the batches that the life's workers made. -ENOMEM. */
int hr__made_find(struct hr_life_reader *r, const struct hr_mark *marks, size_t n);
/* Adds the blocks of a wait. -ENOMEM. */
int hr__wait_add(struct hr_life_reader *r, const struct hr_mark *wait);
/* Adds the time of a fetch that no block covers, until `to`, to the scan. -ENOMEM. */
int hr__fetch_hide(struct hr_life_reader *r, struct hr_fetch *f, int64_t to);

/*
 * life.c: reads the regions of r->stream into the empty r->to, and adds intervals to r->scan.
 * -ENOMEM.
 */
int hr__lives_read(struct hr_life_reader *r);
void hr__life_reader_done(struct hr_life_reader *r);

/*
 * hr__block_add adds a block that the operations in the interval `explains` explain.
 * hr__block_add_own adds a block that the operations of the life's thread explain. -ENOMEM.
 */
int hr__block_add(struct hr_life_reader *r, enum hr_block_kind kind, int64_t from, int64_t to,
		  struct hr_interval explains, uint32_t fetch);
int hr__block_add_own(struct hr_life_reader *r, enum hr_block_kind kind, int64_t from, int64_t to,
		      uint32_t fetch);
int hr__fetch_add(struct hr_life_reader *r, const struct hr_mark *m, uint32_t worker,
		  uint32_t *ret);

#endif

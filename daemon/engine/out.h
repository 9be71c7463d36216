/* SPDX-License-Identifier: Apache-2.0 */
/*
 * out.h - a frame between the engine and the store
 *
 * Purpose   A numbered Frame whose messages are in its own arena, or events that are not encoded
 *           yet, or a marker that all frames of a journal half precede.
 * Owner     The engine makes it (drain thread), the appender frees it. One thread at a time; the
 *           batch pool has a lock.
 */
#ifndef HEADRACE_DAEMON_ENGINE_OUT_H
#define HEADRACE_DAEMON_ENGINE_OUT_H

#include "common/batch.h"
#include "common/frame.h"
#include "common/region.h"
#include "common/arena.h"
#include "daemon/engine/losses.h"

/* A batch of events, not yet encoded. It has 4.5 MiB, so a pool reuses a few batches. */
struct hr_batch {
	struct hr_batch *next;
	uint32_t n;
	uint32_t n_tasks;
	uint64_t first_ns; /* when the first event was added */
	uint64_t bytes_moved;
	struct hr_task tasks[HR_BATCH_TASKS];
	struct hr_event events[HR_BATCH_EVENTS];
};

struct hr_batch_pool;

/* Makes a pool of at most `max` batches. hr_batch_get waits if all batches are in use. */
int hr_batch_pool_new(unsigned max, struct hr_batch_pool **ret);
/* accepts NULL; all batches must be in the pool */
void hr_batch_pool_free(struct hr_batch_pool *p);
struct hr_batch *hr_batch_get(struct hr_batch_pool *p);
void hr_batch_put(struct hr_batch_pool *p, struct hr_batch *b); /* accepts b == NULL */

struct hr_out {
	struct hr_out *next;
	/*
	 * Not 0: a marker. When all earlier frames are stored, this half of the journal may be
	 * retired.
	 */
	uint64_t retire_gen;
	Headrace__Frame frame;
	Headrace__Clock clock;
	struct hr_arena arena;
	struct hr_batch *batch;
	struct hr_regions *regions;
	uint8_t *packed; /* The frame's bytes, which the appender sets when it empties the arena. */
	size_t packed_bytes;
	/* What is lost if the frame must be dropped; count 0: nothing. */
	struct hr_loss absence;
};

struct hr_out_list {
	struct hr_out *first;
	struct hr_out **last;
};

static inline void hr_out_list_init(struct hr_out_list *l)
{
	l->first = NULL;
	l->last = &l->first;
}

static inline void hr_out_list_push(struct hr_out_list *l, struct hr_out *o)
{
	o->next = NULL;
	*l->last = o;
	l->last = &o->next;
}

struct hr_out *hr_out_list_pop(struct hr_out_list *l);

void hr_out_list_join(struct hr_out_list *l, struct hr_out_list *from);

struct hr_out *hr_out_new(void);
void hr_out_free(struct hr_out *o, struct hr_batch_pool *pool);

#endif

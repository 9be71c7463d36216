/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fold.h - one operation in the engine
 *
 * records.c finds and orders the records of an entry; fold.c checks a record, finds its file and
 * adds it up; descriptors.c updates positions. The structs here are on the stack.
 */
#ifndef HEADRACE_DAEMON_ENGINE_FOLD_H
#define HEADRACE_DAEMON_ENGINE_FOLD_H

#include "daemon/engine/state.h"

struct fold {
	struct hr_engine *e;
	struct hr_proc *p;
	struct hr_ring_state *ring;
	uint64_t max_ticks; /* records that end later are hostile */
};

/* A record that passed the checks, converted to the units of the engine. */
struct operation {
	const struct hr_record *r;
	const struct hr_pair *pair;
	struct hr_op_trait trait;
	/* The operation as the file record counts it. `bytes` is 0 for calls that move no data. */
	struct hr_file_op of;
	bool sized; /* `of.bytes` is meaningful */
	int64_t offset2;
	uint32_t path, path2; /* indexes of the files; UINT32_MAX: no file */
};

/* Adds one record to the state. `pair`: the second slot of a copy; NULL: none. */
void hr__fold(struct fold *f, const struct hr_record *r, const struct hr_pair *pair);

/* Counts a record that no correct client writes. */
void hr__fold_hostile(struct fold *f, uint32_t op);

/* Returns whether headraced read a record of the operation in the cell of a dead owner. */
bool hr__fold_seen(const struct hr_ring_state *ring, const struct hr_inflight *c);

/* Returns the index of a record's file; UINT32_MAX: no memory. hr__fold_path is usually faster. */
uint32_t hr__fold_find_path(struct fold *f, uint64_t hash, uint16_t scope);

static inline uint32_t hr__fold_path(struct fold *f, uint64_t hash, uint16_t scope)
{
	if (hash == 0)
		return UINT32_MAX;
	/*
	 * A checkpoint clears last_hash, so the process used this file since the last checkpoint.
	 */
	if (__builtin_expect(hash == f->p->last_hash, 1))
		return f->p->last_path;
	return hr__fold_find_path(f, hash, scope);
}

/* Sets the missing offsets of a read, write or copy, and moves the positions of descriptors. */
void hr__fd_move(struct fold *f, struct operation *op);

/* Updates descriptors after any other operation. Call it after the file record's update. */
void hr__fd_effects(struct fold *f, const struct operation *op);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fold.h - one operation in the engine
 *
 * records.c finds and orders the records of an entry; fold.c checks a record, finds its file and
 * adds it up; descriptors.c updates positions. Lives on the stack while an entry is applied.
 */
#ifndef HEADRACE_DAEMON_ENGINE_FOLD_H
#define HEADRACE_DAEMON_ENGINE_FOLD_H

#include "daemon/engine/state.h"

struct fold {
	struct hr_engine *e;
	struct hr_proc *p;
	struct hr_ring_state *ring;
	uint64_t max_ticks; /* later ones are hostile */
};

/* A record that passed the checks, in the engine's units. */
struct operation {
	const struct hr_record *r;
	const struct hr_pair *pair;
	struct hr_op_trait trait;
	/* for its file record: time, offset, bytes (0 for calls that move none) */
	struct hr_file_op of;
	bool sized; /* `of.bytes` is meaningful */
	int64_t offset2;
	uint32_t path, path2; /* index, UINT32_MAX: no file */
};

/* `pair`: its second half; NULL: none. */
void hr__fold(struct fold *f, const struct hr_record *r, const struct hr_pair *pair);

/* Counts a record that no correct client writes. */
void hr__fold_hostile(struct fold *f, uint32_t op);

/* Whether the operation in a dead owner's cell is among the last ones of its ring. */
bool hr__fold_seen(const struct hr_ring_state *ring, const struct hr_inflight *c);

/* Index of a record's file, UINT32_MAX: none. Usually that of the process's last record. */
uint32_t hr__fold_find_path(struct fold *f, uint64_t hash, uint16_t scope);

static inline uint32_t hr__fold_path(struct fold *f, uint64_t hash, uint16_t scope)
{
	if (hash == 0)
		return UINT32_MAX;
	/* A checkpoint clears last_hash, so the file was used since then. */
	if (__builtin_expect(hash == f->p->last_hash, 1))
		return f->p->last_path;
	return hr__fold_find_path(f, hash, scope);
}

/* A read or write: sets offsets that the call did not have, and moves the positions. */
void hr__fd_move(struct fold *f, struct operation *op);

/* Effects of other operations on descriptors. Update the file record first. */
void hr__fd_effects(struct fold *f, const struct operation *op);

#endif

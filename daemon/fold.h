/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fold.h - one operation on its way through the engine
 *
 * Shared by records.c (checks, sums, events) and descriptors.c (positions); lives on the stack while a record is in work.
 */
#ifndef HEADRACE_DAEMON_FOLD_H
#define HEADRACE_DAEMON_FOLD_H

#include "daemon/state.h"

/* The records of one ring, in work. */
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
	uint64_t start_ns, dur_ns;
	uint64_t bytes; /* UINT64_MAX: none can be */
	uint64_t calls;
	int64_t offset, offset2;
	uint32_t path, path2; /* index, UINT32_MAX: no file */
};

/* A read or write: fills in the offsets that the call did not name, and moves the positions. */
void hr__fd_move(struct fold *f, struct operation *op);

/* What other operations do to descriptors. After the file record was updated: it counts the descriptors on it. */
void hr__fd_effects(struct fold *f, const struct operation *op);

#endif

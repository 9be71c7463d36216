/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rollup.h - sums per window and (process, op, mount, scope)
 *
 * Owner     The engine of headraced, or a stream of `headrace import`; one thread. A row is sent
 *           and dropped after the end of its window, or at a checkpoint. So a window may have
 *           several rows of a key; readers add them up.
 * Cost      Each process caches the row of each op, so only its first event needs the map.
 */
#ifndef HEADRACE_COMMON_ROLLUP_H
#define HEADRACE_COMMON_ROLLUP_H

#include <stdbool.h>
#include <stdint.h>

#include "common/filerec.h"
#include "common/hist.h"
#include "common/map64.h"

#define HR_WINDOW_NS UINT64_C(10000000000)

struct hr_rollup {
	uint64_t window; /* start_ns / HR_WINDOW_NS */
	uint64_t proc;
	uint16_t op;
	uint16_t mount;
	uint16_t scope;
	uint16_t spare;
	uint64_t count;
	uint64_t bytes;
	uint64_t errors;
	uint64_t dur_ns;
	uint64_t max_dur_ns;
	uint32_t size_hist[HR_HIST_BINS];
	uint32_t dur_hist[HR_HIST_BINS];
};

struct hr_rollups {
	struct hr_rollup *v;
	uint32_t n, room;
	struct hr_map64 by_key;
	uint64_t oldest; /* window of the oldest row; UINT64_MAX: none */
};

/*
 * Finds or makes a row. *cached: a variable for each (process, op), with any initial value. NULL:
 * no memory.
 */
struct hr_rollup *hr__rollup_find(struct hr_rollups *t, uint64_t window, uint64_t proc, uint16_t op,
				  uint16_t mount, uint16_t scope, uint32_t *cached);

static inline struct hr_rollup *hr_rollup_row(struct hr_rollups *t, uint64_t window, uint64_t proc,
					      uint16_t op, uint16_t mount, uint16_t scope,
					      uint32_t *cached)
{
	if (__builtin_expect(*cached < t->n, 1)) {
		struct hr_rollup *r = &t->v[*cached];

		if (r->window == window && r->proc == proc && r->op == op && r->mount == mount &&
		    r->scope == scope)
			return r;
	}
	return hr__rollup_find(t, window, proc, op, mount, scope, cached);
}

/* The window in which an operation counts: that of its end. */
static inline uint64_t hr_rollup_window(const struct hr_file_op *op)
{
	return (op->start_ns + op->dur_ns) / HR_WINDOW_NS;
}

/* Adds one operation. `sized`: op->bytes is meaningful. `failed`: it counts as an error. */
static inline void hr_rollup_add(struct hr_rollup *row, const struct hr_file_op *op, bool sized,
				 bool failed)
{
	row->count++;
	row->errors += failed;
	row->dur_ns += op->dur_ns;
	if (op->dur_ns > row->max_dur_ns)
		row->max_dur_ns = op->dur_ns;
	row->dur_hist[hr_log2_bin(op->dur_ns)]++;
	if (!sized)
		return;
	row->bytes += op->bytes;
	row->size_hist[hr_log2_bin(op->bytes)]++;
}

/* Adds what is no operation of its own (enum hr_side). */
static inline void hr_rollup_add_side(struct hr_rollup *row, const struct hr_file_op *op)
{
	row->count += op->count;
	row->bytes += op->bytes;
	row->dur_ns += op->dur_ns;
	row->size_hist[hr_log2_bin(op->bytes / op->count)] += (uint32_t)op->count;
}

/* Removes rows of windows up to `window`, which the caller has sent. */
void hr_rollups_drop(struct hr_rollups *t, uint64_t window);
void hr_rollups_done(struct hr_rollups *t);

#endif

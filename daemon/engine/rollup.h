/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rollup.h - sums per window and (process, op, mount, scope)
 *
 * Owner     The engine; drain thread. A row is sent and dropped after the end of its window, or at
 *           a checkpoint. So a window may have several rows of a key; readers add them up.
 * Cost      Each process caches the row of each op, so only its first event needs the map.
 */
#ifndef HEADRACE_DAEMON_ENGINE_ROLLUP_H
#define HEADRACE_DAEMON_ENGINE_ROLLUP_H

#include <stdbool.h>
#include <stdint.h>

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

/* Removes rows of windows up to `window`, which the caller has sent. */
void hr_rollups_drop(struct hr_rollups *t, uint64_t window);
void hr_rollups_done(struct hr_rollups *t);

#endif

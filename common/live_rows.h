/* SPDX-License-Identifier: Apache-2.0 */
/*
 * live_rows.h - how much the counters of a job have grown between two pictures (proto/live.proto)
 *
 * Owner     The caller owns both pictures. Functions that find rows need sorted pictures
 *           (hr_live_sort).
 * Threads   Any.
 */
#ifndef HEADRACE_COMMON_LIVE_ROWS_H
#define HEADRACE_COMMON_LIVE_ROWS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "proto/live.pb-c.h"

/* Sorts rows, uses, processes and files by their keys. */
void hr_live_sort(Headrace__LiveJob *m);

/*
 * Whether rows of `now` can be compared with those of `before` (may be NULL): no headraced has
 * restarted in between, and the time is so short that the processes that ended in between are still
 * in the picture.
 */
bool hr_live_comparable(const Headrace__LiveJob *before, const Headrace__LiveJob *now);

const Headrace__LiveProcess *hr_live_process(const Headrace__LiveJob *m, uint64_t proc);
const Headrace__LiveFile *hr_live_file(const Headrace__LiveJob *m, uint32_t file);
const Headrace__LiveMount *hr_live_mount(const Headrace__LiveJob *m, uint32_t mount);

/* Whether it is one process, which has not ended. */
static inline bool hr_live_lives(const Headrace__LiveProcess *p)
{
	return p->pid != 0 && p->end_ns == 0;
}

/* Returns the number of live processes, also of those that the picture leaves out. */
uint32_t hr_live_count(const Headrace__LiveJob *m);

/*
 * Return the same row of an earlier picture; NULL: it has none. Call them for all rows in their
 * order, with *at 0 for the first one. A row that sums up ended processes is its own earlier row:
 * the processes that it adds ended before the earlier picture.
 */
const Headrace__LiveRow *hr_live_row_before(const Headrace__LiveJob *before, size_t *at,
					    const Headrace__LiveRow *r);
const Headrace__LiveUse *hr_live_use_before(const Headrace__LiveJob *before, size_t *at,
					    const Headrace__LiveUse *u);

/* The same for a process, in any order. */
const Headrace__LiveProcess *hr_live_process_before(const Headrace__LiveJob *before,
						    const Headrace__LiveProcess *p);

static inline uint64_t hr_live_increase(uint64_t before, uint64_t now)
{
	return now > before ? now - before : 0;
}

#endif

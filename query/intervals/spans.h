/* SPDX-License-Identifier: Apache-2.0 */
/*
 * spans.h - intervals of time, sorted and united
 *
 * Purpose   How long was at least one operation under way? Lists of intervals are sorted by start,
 *           merged, and united into intervals that neither overlap nor touch. Events of one
 *           thread come sorted, those of several are merged list by list: no general sort is
 *           needed for what a job writes.
 * Threads   Plain functions over the caller's memory.
 */
#ifndef HEADRACE_QUERY_INTERVALS_SPANS_H
#define HEADRACE_QUERY_INTERVALS_SPANS_H

#include <stddef.h>
#include <stdint.h>

struct hr_span {
	int64_t start, end; /* [start, end), start < end */
};

/* A list sorted by start. */
struct hr_span_run {
	const struct hr_span *at;
	size_t n;
};

/* Sorts by start: one pass over a sorted list, little more over an almost sorted one. */
void hr_spans_sort(struct hr_span *spans, size_t n);

/*
 * Merges runs (at least one; their order is lost) into one. `room`: two buffers, each with room for
 * all spans, not overlapping the runs. The result is in one of them, or is the only run itself.
 */
struct hr_span_run hr_spans_merge(struct hr_span_run *runs, size_t n_runs,
				  struct hr_span *const room[2]);

/* Unites sorted spans; `to` may be the same array. Returns how many are left: disjoint, sorted. */
size_t hr_spans_unite(struct hr_span_run from, struct hr_span *to);

/*
 * Splits a united list at `cut`: adds to *total the time above it, and returns how many spans are
 * below; a span that crosses the cut ends there.
 */
size_t hr_spans_cut(struct hr_span *spans, size_t n, int64_t cut, uint64_t *total);

/* How many spans of a united list end before `time`. */
size_t hr_spans_before(const struct hr_span *spans, size_t n, int64_t time);

#endif

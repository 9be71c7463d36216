/* SPDX-License-Identifier: Apache-2.0 */
/*
 * spans.h - sorts, merges and unites intervals of time; united intervals do not touch
 *
 * Events of one thread are sorted already, so lists are merged, and no general sort is needed.
 */
#ifndef HEADRACE_QUERY_INTERVALS_SPANS_H
#define HEADRACE_QUERY_INTERVALS_SPANS_H

#include <stddef.h>
#include <stdint.h>

struct hr_span {
	int64_t start, end; /* [start, end), start < end */
};

/* A list of spans, sorted by start. */
struct hr_span_run {
	const struct hr_span *at;
	size_t n;
};

/* Sorts by start. A sorted list takes one pass, an almost sorted list little more. */
void hr_spans_sort(struct hr_span *spans, size_t n);

/*
 * Merges one or more runs into one run, which is in one of the two buffers `room`, or is the only
 * run. Each buffer has space for all spans, and does not overlap the runs. Changes the array
 * `runs`.
 */
struct hr_span_run hr_spans_merge(struct hr_span_run *runs, size_t n_runs,
				  struct hr_span *const room[2]);

/* Writes the union of sorted spans to `to` (may be the array of `from`). Returns its length. */
size_t hr_spans_unite(struct hr_span_run from, struct hr_span *to);

/* Returns the number of united spans before `cut`. Adds the time after it to *total. */
size_t hr_spans_cut(struct hr_span *spans, size_t n, int64_t cut, uint64_t *total);

size_t hr_spans_before(const struct hr_span *spans, size_t n, int64_t time);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
#include "query/intervals/spans.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "common/array.h"

/* An almost sorted list needs at most this many steps per span in an insertion sort. */
#define STEPS 8u

static int by_start(const void *a, const void *b)
{
	const struct hr_span *x = a, *y = b;

	return (x->start > y->start) - (x->start < y->start);
}

/*
 * Sorts an almost sorted list. (Operations of a thread that overlap, for example aio, end out of
 * order.) False: it would need too many steps, and is not sorted.
 */
static bool insertion_sort(struct hr_span *spans, size_t n)
{
	size_t steps = STEPS * n;

	for (size_t i = 1; i < n; i++) {
		struct hr_span new = spans[i];
		size_t k = i;

		for (; k > 0 && spans[k - 1].start > new.start &&steps > 0; k--, steps--)
			spans[k] = spans[k - 1];
		spans[k] = new;
		if (steps == 0)
			return false;
	}
	return true;
}

void hr_spans_sort(struct hr_span *spans, size_t n)
{
	if (!insertion_sort(spans, n))
		qsort(spans, n, sizeof(*spans), by_start);
}

/* Merges two runs. The choice of a span has no branch, because mispredictions take time. */
static struct hr_span_run merge_two(struct hr_span_run a, struct hr_span_run b, struct hr_span *to)
{
	const struct hr_span *x = a.at, *y = b.at, *x_end = x + a.n, *y_end = y + b.n;
	struct hr_span *at = to;

	while (x < x_end && y < y_end) {
		uint64_t second = y->start < x->start;
		uintptr_t either = (uintptr_t)x ^ (uintptr_t)y;
		uintptr_t next = (uintptr_t)x ^ (either & -second);

		memcpy(at++, (const void *)next, sizeof(*at));
		x += 1 - second;
		y += second;
	}
	memcpy(at, x, (size_t)(x_end - x) * sizeof(*at));
	at += x_end - x;
	memcpy(at, y, (size_t)(y_end - y) * sizeof(*at));
	return (struct hr_span_run){to, a.n + b.n};
}

static int by_length(const void *a, const void *b)
{
	const struct hr_span_run *x = a, *y = b;

	return (x->n > y->n) - (x->n < y->n);
}

static void merge_pairs(struct hr_span_run *runs, size_t pairs, struct hr_span *to)
{
	for (size_t i = 0; i < pairs; i++) {
		runs[i] = merge_two(runs[2 * i], runs[2 * i + 1], to);
		to += runs[i].n;
	}
}

/*
 * First merges the shortest runs until their number is a power of two. Then merges pairs of runs in
 * several passes, each of which copies all spans once.
 */
struct hr_span_run hr_spans_merge(struct hr_span_run *runs, size_t n_runs,
				  struct hr_span *const room[2])
{
	size_t even = 1, extra;
	unsigned to = 0;

	while (2 * even <= n_runs)
		even *= 2;
	extra = n_runs - even;
	if (extra > 0) {
		qsort(runs, n_runs, sizeof(*runs), by_length);
		merge_pairs(runs, extra, room[0]);
		memmove(runs + extra, runs + 2 * extra, (even - extra) * sizeof(*runs));
		to = 1;
	}
	for (; even > 1; even /= 2, to = !to)
		merge_pairs(runs, even / 2, room[to]);
	return runs[0];
}

size_t hr_spans_unite(struct hr_span_run from, struct hr_span *to)
{
	struct hr_span last;
	size_t n = 0;

	if (from.n == 0)
		return 0;
	last = from.at[0];
	for (size_t i = 1; i < from.n; i++) {
		struct hr_span next = from.at[i];

		if (next.start > last.end) {
			to[n++] = last;
			last = next;
		} else if (next.end > last.end) {
			last.end = next.end;
		}
	}
	to[n++] = last;
	return n;
}

size_t hr_spans_before(const struct hr_span *spans, size_t n, int64_t time)
{
	return hr_array_search(i, n, spans[i].end < time);
}

static uint64_t spans_length(const struct hr_span *span)
{
	return (uint64_t)span->end - (uint64_t)span->start;
}

size_t hr_spans_cut(struct hr_span *spans, size_t n, int64_t cut, uint64_t *total)
{
	size_t below = hr_spans_before(spans, n, cut);
	uint64_t sum = 0;

	if (below < n && spans[below].start < cut) {
		sum = (uint64_t)spans[below].end - (uint64_t)cut;
		spans[below++].end = cut;
	}
	for (size_t i = below; i < n; i++)
		sum += spans_length(&spans[i]);
	*total += sum;
	return below;
}

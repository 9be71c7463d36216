/* SPDX-License-Identifier: Apache-2.0 */
/* test_spans.c - sorting, merging, uniting and cutting intervals, against a map of every nanosecond */
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "query/intervals/spans.h"
#include "tests/unit.h"

#define TIME  200 /* all spans lie in [0, TIME) */
#define SPANS 120u
#define RUNS  9u

static uint64_t seed = 1;

static uint64_t random_below(uint64_t n)
{
	seed = seed * UINT64_C(6364136223846793005) + 1442695040888963407u;
	return (seed >> 33) % n;
}

static struct hr_span random_span(void)
{
	int64_t start = (int64_t)random_below(TIME - 1);
	uint64_t longest = random_below(4) == 0 ? (uint64_t)(TIME - start - 1) : 3;

	if (longest > (uint64_t)(TIME - start - 1))
		longest = (uint64_t)(TIME - start - 1);
	return (struct hr_span){start, start + 1 + (int64_t)random_below(longest + 1)};
}

static void mark(bool map[TIME + 1], const struct hr_span *spans, size_t n)
{
	for (size_t i = 0; i < n; i++)
		memset(map + spans[i].start, true, (size_t)(spans[i].end - spans[i].start));
}

static void assert_sorted(const struct hr_span *spans, size_t n)
{
	for (size_t i = 1; i < n; i++)
		assert_true(spans[i - 1].start <= spans[i].start);
}

/* Any number of runs, empty ones among them, come out as one that covers the same moments. */
static void runs_are_united(void **state)
{
	for (unsigned round = 0; round < 3000; round++) {
		struct hr_span spans[RUNS * SPANS], first[RUNS * SPANS], second[RUNS * SPANS];
		struct hr_span *const room[2] = {first, second};
		size_t n_runs = 1 + random_below(RUNS), n = 0, united;
		bool before[TIME + 1] = {false}, after[TIME + 1] = {false};
		struct hr_span_run runs[RUNS], merged;

		for (size_t i = 0; i < n_runs; i++) {
			size_t length = random_below(4) == 0 ? 0 : random_below(SPANS);

			runs[i] = (struct hr_span_run){spans + n, length};
			for (size_t k = 0; k < length; k++)
				spans[n + k] = random_span();
			hr_spans_sort(spans + n, length);
			assert_sorted(spans + n, length);
			n += length;
		}
		mark(before, spans, n);
		merged = hr_spans_merge(runs, n_runs, room);
		assert_int_equal(merged.n, n);
		assert_sorted(merged.at, n);
		united = hr_spans_unite(merged, spans);
		mark(after, spans, united);
		assert_memory_equal(before, after, sizeof(before));
		for (size_t i = 1; i < united; i++)
			assert_true(spans[i - 1].end < spans[i].start);
	}
}

static void what_is_cut_off_is_added_up(void **state)
{
	for (unsigned round = 0; round < 3000; round++) {
		struct hr_span spans[SPANS];
		size_t n = random_below(SPANS), below;
		int64_t cut = (int64_t)random_below(TIME + 1);
		bool before[TIME + 1] = {false}, after[TIME + 1] = {false};
		uint64_t total = 5, above = 5;

		for (size_t i = 0; i < n; i++)
			spans[i] = random_span();
		hr_spans_sort(spans, n);
		n = hr_spans_unite((struct hr_span_run){spans, n}, spans);
		mark(before, spans, n);
		below = hr_spans_cut(spans, n, cut, &total);
		mark(after, spans, below);
		assert_memory_equal(before, after, (size_t)cut);
		for (int64_t t = cut; t < TIME; t++) {
			above += before[t];
			assert_false(after[t]);
		}
		assert_int_equal(total, above);
	}
}

/* As long as they can be, in the worst order for a sort that expects them almost sorted. */
static void the_far_ends_of_time_fit(void **state)
{
	struct hr_span spans[1000];
	uint64_t total = 0;

	for (size_t i = 0; i < 1000; i++)
		spans[i] = (struct hr_span){1000 - (int64_t)i, 2000};
	hr_spans_sort(spans, 1000);
	assert_sorted(spans, 1000);
	spans[0] = (struct hr_span){INT64_MIN, INT64_MAX};
	assert_int_equal(hr_spans_unite((struct hr_span_run){spans, 1000}, spans), 1);
	assert_int_equal(hr_spans_cut(spans, 1, INT64_MIN, &total), 0);
	assert_true(total == UINT64_MAX);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(runs_are_united),
	    cmocka_unit_test(what_is_cut_off_is_added_up),
	    cmocka_unit_test(the_far_ends_of_time_fit),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

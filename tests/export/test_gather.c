/* SPDX-License-Identifier: Apache-2.0 */
/* Sums of operations over time. LeakSanitizer checks that the roll-ups that were read are freed. */

#include "export/gather.h"
#include "export/walk.h"
#include "tests/query/fixture.h"
#include "tests/query/train_store.h"
#include "tests/unit.h"

/* Extends a span of time by an operation or a region. */
static void extend(uint64_t span[2], uint64_t start_ns, uint64_t dur_ns)
{
	span[0] = start_ns < span[0] ? start_ns : span[0];
	span[1] = start_ns + dur_ns > span[1] ? start_ns + dur_ns : span[1];
}

/* The window of a roll-up whose operations have events does not extend the time of the job. */
static void the_time_is_that_of_operations_and_regions(void **state)
{
	struct train *t = train_new();
	const char *const store = t->store;
	const struct hr_walk_options all = {NULL, -1, -1, INT64_MIN, INT64_MAX, -1, -1};
	uint64_t span[2] = {UINT64_MAX, 0};
	struct hr_catalog *c;
	struct hr_gather g;
	struct hr_walk *w;

	for (size_t i = 0; i < t->n_events; i++)
		extend(span, t->events[i].start_ns, t->events[i].dur_ns);
	for (size_t i = 0; i < t->n_regions; i++)
		extend(span, t->regions[i].start_ns, t->regions[i].dur_ns);
	assert_int_equal(hr_catalog_open(&store, 1, NULL, &c, NULL), 0);
	assert_int_equal(hr_walk_new(c, &all, &w), 0);
	assert_int_equal(hr_gather_init(&g, w), 0);
	assert_false(g.counters);
	assert_int_equal(g.from_ns, FIX_REAL_NS + span[0]);
	assert_int_equal(g.to_ns, FIX_REAL_NS + span[1]);
	hr_gather_done(&g);
	hr_walk_free(w);
	hr_catalog_free(c);
	train_free(t);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(the_time_is_that_of_operations_and_regions),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

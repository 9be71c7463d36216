/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_names.c - the shared, lazily made state of a query, from many threads at once (for
 * ThreadSanitizer above all)
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "query/tables/internal.h"
#include "tests/query/fixture.h"
#include "tests/unit.h"

#define THREADS 8u
#define ROUNDS	10u

static const char *text_of(const duckdb_string_t *s)
{
	return s->value.inlined.length <= sizeof(s->value.inlined.inlined)
		   ? s->value.inlined.inlined
		   : s->value.pointer.ptr;
}

static bool is(const duckdb_string_t *s, const char *text)
{
	return s->value.inlined.length == strlen(text) &&
	       memcmp(text_of(s), text, strlen(text)) == 0;
}

/* Each thread asks for the parts in an order of its own, and reads what it asked for. */
static void *use_names(void *arg)
{
	static const unsigned orders[][4] = {
	    {HR_NAMES_INFO, HR_NAMES_PATH, HR_NAMES_BASE, HR_NAMES_PATTERN},
	    {HR_NAMES_PATTERN, HR_NAMES_BASE, HR_NAMES_PATH, HR_NAMES_INFO},
	    {HR_NAMES_BASE, HR_NAMES_INFO, HR_NAMES_PATTERN, HR_NAMES_PATH},
	};
	struct hr_query *q = arg;
	static _Atomic unsigned next;
	const unsigned *order = orders[atomic_fetch_add(&next, 1) % 3];
	uintptr_t wrong = 0;

	for (unsigned i = 0; i < 4; i++) {
		for (size_t k = 0; k < q->n_streams; k++) {
			struct hr_qstream *st = &q->streams[k];
			const struct hr_query_names *names = &st->names;

			wrong += hr__names_need(q, st, order[i]) != 0;
			if (names->n <= 1)
				continue;
			if (order[i] == HR_NAMES_INFO)
				wrong += names->hash[2] != 1001;
			else if (order[i] == HR_NAMES_PATH)
				wrong += !is(&names->path[2], "/scratch/ckpt/model-10.pt");
			else if (order[i] == HR_NAMES_BASE)
				wrong += !is(&names->base[2], "model-10.pt");
			else
				wrong += !is(&names->patterns[names->pattern[3]], "model.pt");
		}
		hr_query_damage(q, &q->streams[0], 0, -EIO);
	}
	return (void *)wrong;
}

static void names_are_made_once(void **state)
{
	for (unsigned round = 0; round < ROUNDS; round++) {
		pthread_t threads[THREADS];
		struct fixture f;
		const char *first;

		fixture_open(&f, *state, NULL);
		for (unsigned i = 0; i < THREADS; i++)
			assert_int_equal(pthread_create(&threads[i], NULL, use_names, f.q), 0);
		for (unsigned i = 0; i < THREADS; i++) {
			void *wrong;

			pthread_join(threads[i], &wrong);
			assert_null(wrong);
		}
		assert_int_equal(hr_query_damaged(f.q, &first), 1);
		assert_non_null(strstr(first, "job 7"));
		fixture_close(&f);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(names_are_made_once),
	};

	return cmocka_run_group_tests(tests, fixture_setup_store, fixture_teardown_store);
}

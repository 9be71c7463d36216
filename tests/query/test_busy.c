/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_busy.c - hr_busy() says what a union of all events by plain SQL says, to the nanosecond
 */
#include <errno.h>
#include <glob.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "query/intervals/busy.h"
#include "query/named.h"
#include "tests/bench/workflow_e.h"
#include "tests/query/busy_store.h"
#include "tests/query/fixture.h"
#include "tests/seeds.h"
#include "tests/unit.h"

#define THREADS 4u

/* What hr_busy() has, and what SQL groups by for it. */
static const struct {
	const char *by, *columns;
} ways[] = {
    {"rank", ", rank"},
    {"rank, class", ", rank, class"},
    {"", ""},
    {"class", ", class"},
    {"node", ", node"},
    {"proc", ", node, proc"},
    {"node,rank worker", ", node, rank, worker"},
    {"worker, class, proc, rank", ", node, proc, rank, worker, class"},
};
static const char *const scopes[] = {"all", "data", "runtime"};

static char *text(const char *format, ...)
{
	va_list args;
	char *made;

	va_start(args, format);
	assert_true(vasprintf(&made, format, args) >= 0);
	va_end(args);
	return made;
}

/*
 * Sorts all events: where one ends later than those that began before it, it adds what they did not cover.
 * Processes that nothing is known of have one row.
 */
static char *ask_by_sql(struct fixture *f, const char *columns, const char *scope)
{
	char *sql =
	    text("WITH e AS ("
		 "  SELECT cluster, job, attempt%s, start_ns, end_ns, dur_ns,"
		 "    max(end_ns) OVER (PARTITION BY cluster, job, attempt%s ORDER BY start_ns"
		 "      ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS reached_ns"
		 "  FROM (SELECT * REPLACE (CASE WHEN pid IS NOT NULL THEN proc END AS proc)"
		 "    FROM events)"
		 "  WHERE '%s' = 'all' OR scope = '%s') "
		 "SELECT cluster, job, attempt%s, sum(greatest(0, end_ns - greatest(start_ns,"
		 "    coalesce(reached_ns, start_ns)))), sum(dur_ns), count(*), min(start_ns),"
		 "  max(end_ns) "
		 "FROM e GROUP BY cluster, job, attempt%s ORDER BY ALL",
		 columns, columns, scope, scope, columns, columns);
	char *answer = fixture_ask(f, sql);

	free(sql);
	return answer;
}

static char *ask_busy(struct fixture *f, const char *by, const char *columns, const char *scope)
{
	char *sql =
	    text("SELECT cluster, job, attempt%s, busy_ns, dur_ns, count, first_ns, last_ns "
		 "FROM hr_busy(by := '%s', scope := '%s') ORDER BY ALL",
		 columns, by, scope);
	char *answer = fixture_ask(f, sql);

	free(sql);
	return answer;
}

/* Both must agree, and have something to say. */
static void compare(struct fixture *f, const char *what)
{
	for (size_t i = 0; i < sizeof(ways) / sizeof(ways[0]); i++) {
		for (size_t k = 0; k < sizeof(scopes) / sizeof(scopes[0]); k++) {
			char *is = ask_busy(f, ways[i].by, ways[i].columns, scopes[k]);
			char *should = ask_by_sql(f, ways[i].columns, scopes[k]);

			assert_true(should[0] != '\0');
			if (strcmp(is, should) != 0)
				fail_msg("%s, by '%s', %s\n--- is\n%s--- should be\n%s---", what,
					 ways[i].by, scopes[k], is, should);
			free(is);
			free(should);
		}
	}
}

static void the_small_store(void **state)
{
	struct fixture f;

	fixture_open(&f, *state, NULL);
	compare(&f, "fixture");
	fixture_close(&f);
}

static void operations_that_overlap_in_every_way(void **state)
{
	const struct hr_query_options options[] = {{.threads = 1}, {.threads = 3}};

	for (unsigned seed = 1; seed <= test_seeds(6); seed++) {
		char *store = busy_store_make(seed, false), what[32];
		struct fixture f;

		snprintf(what, sizeof(what), "seed %u", seed);
		fixture_open(&f, store, &options[seed % 2]);
		compare(&f, what);
		fixture_close(&f);
		build_remove(store);
	}
}

/* Of many intervals that hardly ever overlap: those of a few batches. */
static void little_is_kept(struct hr_query *q)
{
	struct hr_busy_worker *w = hr__busy_worker_new();
	struct hr_busy *b;

	assert_non_null(w);
	assert_int_equal(
	    hr__busy_new(q, &(struct hr_busy_args){HR_BUSY_RANK, HR_BUSY_ALL, HR_BUSY_ANY_RANK},
			 NULL, &b),
	    0);
	assert_int_equal(hr__busy_work(b, w), 1);
	assert_in_range(hr__busy_pending(b), 1, 20000);
	hr__busy_free(b);
	hr__busy_worker_free(w);
}

static void a_large_job(void **state)
{
	const struct hr_we_config job = {.job = "noscr", .events = 300000};
	char *store = build_folder(), *is, *should;
	struct hr_we_totals totals = {0};
	struct fixture f;

	hr_we_store(&job, store, &totals);
	hr_we_totals_done(&totals);
	fixture_open(&f, store, NULL);
	is = ask_busy(&f, "rank, class", ", rank, class", "all");
	should = ask_by_sql(&f, ", rank, class", "all");
	assert_string_equal(is, should);
	free(is);
	free(should);
	little_is_kept(f.q);
	fixture_close(&f);
	build_remove(store);
}

/* ---- what is not there, or not true ------------------------------------------------------ */

static void flip(const char *pattern, const struct hr_frame_ref *frame)
{
	long at = (long)(frame->offset + frame->bytes - 1);
	glob_t found;
	FILE *f;
	int byte;

	assert_int_equal(glob(pattern, 0, NULL, &found), 0);
	f = fopen(found.gl_pathv[0], "r+");
	assert_non_null(f);
	assert_int_equal(fseek(f, at, SEEK_SET), 0);
	byte = fgetc(f);
	assert_int_equal(fseek(f, at, SEEK_SET), 0);
	fputc(byte ^ 4, f);
	assert_int_equal(fclose(f), 0);
	globfree(&found);
}

static void a_damaged_batch_is_noted_and_left_out(void **state)
{
	char *store = busy_store_make(7, false), *pattern;
	const struct hr_stream *s;
	struct hr_frame_ref batch;
	const char *first;
	struct fixture f;

	fixture_open(&f, store, NULL);
	hr_catalog_streams(f.catalog, &s);
	batch = s->frames[s->batches[s->n_batches / 2].frame];
	pattern = text("%s/jobs/%s/%s.%016llx-%u/000001.seg", store, s->job, s->node,
		       (unsigned long long)s->instance, s->attempt);
	fixture_close(&f);
	flip(pattern, &batch);
	free(pattern);
	fixture_open(&f, store, NULL);
	free(ask_busy(&f, "rank", ", rank", "all"));
	assert_int_equal(hr_query_damaged(f.q, &first), 1);
	compare(&f, "damaged");
	assert_int_equal(hr_query_damaged(f.q, &first), 1);
	fixture_close(&f);
	build_remove(store);
}

/* Times in headers decide what is final: an event behind them would be counted twice. */
static void a_header_that_lies_is_damage(void **state)
{
	char *store = busy_store_make(8, true), *is, *others;
	const char *first;
	struct fixture f;

	fixture_open(&f, store, NULL);
	is = ask_busy(&f, "", "", "all");
	assert_int_equal(hr_query_damaged(f.q, &first), 1);
	others = ask_by_sql(&f, "", "all");
	assert_string_not_equal(is, others); /* which have its events */
	free(is);
	free(others);
	fixture_close(&f);
	build_remove(store);
}

/* ---- what a statement may say -------------------------------------------------------------- */

static void wrong_parameters_are_refused(void **state)
{
	static const char *const wrong[][2] = {
	    {"SELECT * FROM hr_busy(by := 'ranks')", "rank, worker, class"},
	    {"SELECT * FROM hr_busy(by := 'rank;class')", "rank, worker, class"},
	    {"SELECT * FROM hr_busy(scope := 'both')", "data, runtime or all"},
	    {"SELECT * FROM hr_busy(class := 'read')", "class"},
	    {"SELECT * FROM hr_busy('rank')", "hr_busy"},
	};
	struct fixture f;

	fixture_open(&f, *state, NULL);
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		char *said = fixture_refused(&f, wrong[i][0], -EBADMSG);

		if (strstr(said, wrong[i][1]) == NULL)
			fail_msg("%s: %s", wrong[i][0], said);
		free(said);
	}
	fixture_close(&f);
}

static void without_parameters_it_is_by_rank_and_of_all(void **state)
{
	struct fixture f;

	fixture_open(&f, *state, NULL);
	fixture_expect(&f,
		       "SELECT node, proc, rank, worker, class, count FROM hr_busy() ORDER BY ALL",
		       ",,0,,,8\n,,2,,,5\n,,,,,2\n");
	fixture_expect(&f, "SELECT count(*) FROM hr_busy(by := NULL, scope := NULL)", "3\n");
	fixture_expect(&f,
		       "SELECT a.rank, b.count FROM hr_busy() a JOIN hr_busy(scope := 'data') b "
		       "ON a.rank = b.rank ORDER BY ALL",
		       "0,7\n2,5\n");
	fixture_close(&f);
}

/* Batches that a WHERE rules out stay unread, and the answer is the same. */
static void it_is_pruned(void **state)
{
	static const struct {
		const char *sql;
		uint64_t read;
	} cases[] = {
	    {"SELECT * FROM hr_busy() ORDER BY ALL", 3},
	    {"SELECT * FROM hr_busy() WHERE job = '8' ORDER BY ALL", 0},
	    {"SELECT * FROM hr_busy() WHERE rank = 0 ORDER BY ALL", 1},
	    {"SELECT * FROM hr_busy() b WHERE b.rank = 2 ORDER BY ALL", 2},
	    {"SELECT * FROM hr_busy() b WHERE b.rank IS NULL OR rank = 1 ORDER BY ALL", 3},
	    {"SELECT * FROM hr_busy() WHERE hr_busy.rank = 0 ORDER BY ALL", 1},
	    {"SELECT * FROM hr_busy(by := 'node') WHERE node = 'n2' ORDER BY ALL", 2},
	    {"SELECT * FROM hr_busy(by := 'class, rank') WHERE class = 'write' ORDER BY ALL", 2},
	    {"SELECT * FROM hr_busy(by := 'rank, worker') WHERE worker = 3 AND rank = 2 ORDER BY "
	     "ALL",
	     1},
	    {"SELECT DISTINCT rank FROM hr_busy() ORDER BY ALL", 3},
	    {"SELECT rank, busy_ns FROM hr_busy() WHERE rank = 0 UNION ALL SELECT rank, count(*) "
	     "FROM events GROUP BY rank ORDER BY ALL",
	     6},
	};
	const struct hr_query_options all = {.threads = 2, .no_prune = true};
	struct hr_query_scan scan;
	struct fixture pruned, whole;

	fixture_open(&pruned, *state, NULL);
	fixture_open(&whole, *state, &all);
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		char *is = fixture_ask(&pruned, cases[i].sql);
		char *should = fixture_ask(&whole, cases[i].sql);

		assert_string_equal(is, should);
		hr_query_scan(pruned.q, &scan);
		if (scan.batches_read != cases[i].read || scan.batches % 3 != 0)
			fail_msg("%s: reads %d batches, not %d", cases[i].sql,
				 (int)scan.batches_read, (int)cases[i].read);
		free(is);
		free(should);
	}
	fixture_close(&pruned);
	fixture_close(&whole);
}

/* ---- threads, without a frame of DuckDB on the stack (tsan.supp) ----------------------------- */

struct shared {
	struct hr_busy *busy;
	int result[THREADS];
	_Atomic unsigned next;
};

static void *work(void *arg)
{
	struct shared *s = arg;
	unsigned me = atomic_fetch_add(&s->next, 1);
	struct hr_busy_worker *w = hr__busy_worker_new();

	s->result[me] = hr__busy_work(s->busy, w);
	hr__busy_worker_free(w);
	return NULL;
}

static void work_together(struct shared *s, struct hr_query *q)
{
	pthread_t threads[THREADS];

	*s = (struct shared){0};
	assert_int_equal(hr__busy_new(q,
				      &(struct hr_busy_args){HR_BUSY_RANK | HR_BUSY_CLASS,
							     HR_BUSY_DATA, HR_BUSY_ANY_RANK},
				      NULL, &s->busy),
			 0);
	for (unsigned i = 0; i < THREADS; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, work, s), 0);
	for (unsigned i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
}

static void one_of_many_threads_has_the_rows(void **state)
{
	char *store = busy_store_make(9, false);
	uint64_t busy_ns[2] = {0};
	struct fixture f;

	fixture_open(&f, store, NULL);
	for (unsigned round = 0; round < 20; round++) {
		const struct hr_busy_row *rows;
		unsigned with_rows = 0;
		struct shared s;
		size_t n;

		work_together(&s, f.q);
		for (unsigned i = 0; i < THREADS; i++) {
			assert_in_range(s.result[i], 0, 1);
			with_rows += (unsigned)s.result[i];
		}
		assert_int_equal(with_rows, 1);
		n = hr__busy_rows(s.busy, &rows);
		busy_ns[round > 0] = 0;
		for (size_t i = 0; i < n; i++)
			busy_ns[round > 0] += rows[i].busy_ns;
		assert_true(busy_ns[0] > 0);
		assert_int_equal(busy_ns[round > 0], busy_ns[0]);
		hr__busy_free(s.busy);
	}
	hr_query_interrupt(f.q);
	{
		struct shared s;

		work_together(&s, f.q);
		for (unsigned i = 0; i < THREADS; i++)
			assert_int_equal(s.result[i], -EINTR);
		hr__busy_free(s.busy);
	}
	fixture_close(&f);
	build_remove(store);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(the_small_store),
	    cmocka_unit_test(operations_that_overlap_in_every_way),
	    cmocka_unit_test(a_large_job),
	    cmocka_unit_test(a_damaged_batch_is_noted_and_left_out),
	    cmocka_unit_test(a_header_that_lies_is_damage),
	    cmocka_unit_test(wrong_parameters_are_refused),
	    cmocka_unit_test(without_parameters_it_is_by_rank_and_of_all),
	    cmocka_unit_test(it_is_pruned),
	    cmocka_unit_test(one_of_many_threads_has_the_rows),
	};

	return cmocka_run_group_tests(tests, fixture_setup_store, fixture_teardown_store);
}

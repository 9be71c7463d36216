/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fixture.h - a small store with one of everything, and SQL answers as text
 *
 * Purpose   Tests of the query engine compare what it says with what fixture.c wrote, number by
 *           number.
 * Owner     The test. Threads: one.
 */
#ifndef HEADRACE_TESTS_QUERY_FIXTURE_H
#define HEADRACE_TESTS_QUERY_FIXTURE_H

#include <stdio.h>

#include "query/query.h"
#include "tests/store/build.h"

#define FIX_BOOT_NS UINT64_C(5000000000)	  /* first event, CLOCK_BOOTTIME */
#define FIX_REAL_NS UINT64_C(1700000000000000000) /* the same moment, wall clock */

/*
 * Job 7 on nodes n1 (ended) and n2 (not ended); job "8" on n1, without events. Makes the folder;
 * the caller removes it with build_remove().
 */
char *fixture_make(void);

/*
 * Job 9 on n1, four times with the same numbers: twice in sequence, once requeued (attempt 1) and
 * killed, once on cluster d, which also read single characters.
 */
char *fixture_make_runs(void);

/* Job 11 on n1, with what the kernel saw of it; job 12 on n1 and n2, of which no probes ran on n2. */
char *fixture_make_probed(void);

/* A run of job 9 on n1 that began in 2023 and goes on until its writer is closed. */
struct hr_writer *fixture_start_run(const char *store);

struct fixture {
	struct hr_catalog *catalog;
	struct hr_query *q;
};

/* What most test programs need: a store in the group's *state, opened as `fix` with the defaults. */
extern struct fixture fix;
int fixture_setup(void **state);
int fixture_teardown(void **state);

/* The same, not opened. */
int fixture_setup_store(void **state);
int fixture_teardown_store(void **state);

/* Opens a store for queries. Skips the program (77) where there is no DuckDB. */
void fixture_open(struct fixture *f, const char *store, const struct hr_query_options *options);
void fixture_open_job(struct fixture *f, const char *store, const char *job,
		      const struct hr_query_options *options); /* one job of it */
void fixture_close(struct fixture *f);

/*
 * The answer as CSV without the header line, lines ended by '\n'; the caller frees it. Fails the
 * test on an error.
 */
char *fixture_ask(struct fixture *f, const char *sql);

/* The answer of a named query with up to three words (NULL ends them), with its header line; else the same. */
char *fixture_named(struct fixture *f, const char *name, char *a, char *b, char *c);

/* The error text of a statement that must be refused with `error`; the caller frees it. */
char *fixture_refused(struct fixture *f, const char *sql, int error);

/*
 * Prints the first `most` rows of an answer of a named query, and a hash of the others. Numbers have
 * at most 9 digits.
 */
void fixture_print(struct fixture *f, FILE *to, const char *name, const char *a, const char *b,
		   unsigned most);

/* Asserts that a text is the content of a file. */
void fixture_same(const char *path, const char *is);
void fixture_compare(const char *path, void (*print)(FILE *to)); /* what this prints */

/* Asserts that the answer is `expected`. */
void fixture_expect(struct fixture *f, const char *sql, const char *expected);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pipeline_query.c - the SQL of workflow E over the generated job, each answer timed from
 * statement to last row
 *
 * Regions are not recorded, so the time in checkpoints is that of all operations on their files.
 */
#include "tests/bench/pipeline.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "query/named.h"
#include "query/query.h"

static const struct {
	const char *what;
	const char *sql;
} questions[] = {
    {"count(*)", "SELECT count(*) FROM events"},
    {"ops: GROUP BY op", "SELECT op, count(*) FROM events GROUP BY op"},
    {"the same, bytes and time",
     "SELECT op, count(*), sum(bytes), sum(dur_ns) FROM events GROUP BY op"},
    {"distinct files, by id", "SELECT count(DISTINCT file_id) FROM hr_events()"},
    {"distinct files, of files", "SELECT count(DISTINCT path) FROM files"},
    {"distinct files, by path", "SELECT count(DISTINCT path) FROM events"},
    {"E: time in checkpoints",
     "SELECT max(t) FROM (SELECT node, proc, sum(dur_ns) AS t FROM events WHERE path LIKE "
     "'/scratch/run/checkpoints/%' GROUP BY node, proc)"},
    {"E: time by mount, max of ranks",
     "SELECT mount, max(t) FROM (SELECT mount, rank, sum(dur_ns) AS t FROM "
     "events GROUP BY mount, rank) GROUP BY mount"},
    {"E: bytes by pattern", "SELECT pattern, sum(bytes) FROM events GROUP BY pattern"},
    {"E: ops of model*", "SELECT op, count(*) FROM events WHERE base LIKE 'model%' GROUP BY op"},
    {"E: timeline of one file", "SELECT start_ns, op, file_offset, bytes FROM events WHERE path = "
				"$path ORDER BY start_ns"},
    {"E: sizes of writes",
     "SELECT count(*), avg(bytes), stddev(bytes), min(bytes), quantile_cont(bytes, "
     "[0.25, 0.5, 0.75]), max(bytes) FROM events WHERE class = 'write'"},
    {"one rank's reads",
     "SELECT count(*), sum(bytes) FROM events WHERE rank = 3 AND class = 'read'"},
};

/* Those that rollups answer. */
static const char *const named[] = {"summary", "ops", "ranks", "mounts", "sizes"};

static int chunk_in(void *self, duckdb_data_chunk chunk)
{
	*(uint64_t *)self += hr_duckdb.data_chunk_get_size(chunk);
	return 0;
}

/* CPU time of all threads: what the machine's other users cannot change. */
static double process_cpu_s(void)
{
	struct timespec t;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

/* The path of the first stream's first file, as text that the caller frees. */
static char *first_path(const struct hr_catalog *catalog)
{
	const struct hr_stream *streams;
	struct hr_file_info file;

	if (hr_catalog_streams(catalog, &streams) == 0 ||
	    hr_stream_file(&streams[0], 1, true, &file) < 0)
		return NULL;
	return strndup((const char *)file.path, file.path_bytes);
}

/* A query of its own for each question: names that one has made are not there for the next. */
static int ask(const struct hr_catalog *catalog, const char *what, const char *sql,
	       const struct hr_query_arg *args, size_t n_args)
{
	struct hr_query_options options = {0};
	uint64_t rows = 0;
	const struct hr_query_sink sink = {.chunk = chunk_in, .self = &rows};
	struct hr_query *q;
	char *error = NULL;
	double wall = hr_bench_wall_s(), cpu = process_cpu_s();
	int r = hr_query_new(catalog, &options, &q, &error);

	if (r == 0)
		r = hr_query_run(q, sql, args, n_args, &sink, &error);
	if (r < 0) {
		fprintf(stderr, "pipeline: %s: %s\n", what, error != NULL ? error : strerror(-r));
		free(error);
		return r;
	}
	hr_bench_row(what, hr_bench_wall_s() - wall, "s");
	hr_bench_row("  all threads", process_cpu_s() - cpu, "cpu s");
	hr_query_free(q);
	return 0;
}

static int ask_questions(const struct hr_catalog *catalog)
{
	char *path = first_path(catalog);
	const struct hr_query_arg arg = {"path", path, HR_ARG_VARCHAR};
	int r = path != NULL ? 0 : -ENOENT;

	for (size_t i = 0; r == 0 && i < sizeof(questions) / sizeof(questions[0]); i++)
		r = ask(catalog, questions[i].what, questions[i].sql, &arg, 1);
	free(path);
	return r;
}

static int ask_named(const struct hr_catalog *catalog, const char *name)
{
	const struct hr_named *q = hr_named_find(name);
	struct hr_named_args args;
	char *error = NULL;
	int r = hr_named_args_init(q, NULL, 0, &args, &error);

	if (r < 0) {
		free(error);
		return r;
	}
	r = ask(catalog, name, q->sql, args.list, args.n);
	hr_named_args_done(&args);
	return r;
}

int hr_bench_query(const struct hr_bench *bench)
{
	struct hr_catalog *catalog;
	char *error = NULL;
	double wall = hr_bench_wall_s();
	int r = hr_duckdb_load(&error);

	if (r < 0) {
		printf("  skipped: %s\n", error);
		free(error);
		return 0;
	}
	r = hr_catalog_open(&bench->store, 1, &(const struct hr_catalog_filter){.job = "bench"},
			    &catalog, &error);
	if (r < 0) {
		fprintf(stderr, "pipeline: %s\n", error != NULL ? error : strerror(-r));
		free(error);
		return r;
	}
	hr_bench_row("open", hr_bench_wall_s() - wall, "s");
	r = ask_questions(catalog);
	for (size_t i = 0; r == 0 && i < sizeof(named) / sizeof(named[0]); i++)
		r = ask_named(catalog, named[i]);
	hr_catalog_free(catalog);
	return r;
}

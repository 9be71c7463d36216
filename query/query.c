/* SPDX-License-Identifier: Apache-2.0 */
#include "query/query.h"

#include <errno.h>
#include <sched.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "query/diagnosis/diagnosis.h"
#include "query/named.h"
#include "query/tables/internal.h"
#include "common/now.h"
#include "common/text.h"

#define DUCKDB_MIN_BYTES (256ull << 20)

/* ---- set up ---- */

static unsigned usable_cpus(void)
{
	cpu_set_t set;

	if (sched_getaffinity(0, sizeof(set), &set) < 0)
		return 1;
	return (unsigned)CPU_COUNT(&set);
}

static uint64_t half_of_memory(void)
{
	uint64_t bytes = (uint64_t)sysconf(_SC_PHYS_PAGES) * (uint64_t)sysconf(_SC_PAGESIZE) / 2;

	return bytes < DUCKDB_MIN_BYTES ? DUCKDB_MIN_BYTES : bytes;
}

/*
 * headraced locks the store that it writes. For a store of a collector, which has no such lock, the
 * time of the last message shows whether headraced runs.
 */
static enum hr_stream_life life(const struct hr_query *q, const struct hr_stream *s)
{
	if (s->ended)
		return HR_STREAM_ENDED;
	if (!s->collected)
		return s->live ? HR_STREAM_RUNNING : HR_STREAM_CUT;
	if (s->closed_ns > 0)
		return HR_STREAM_CUT;
	if (!s->connected || (q->now_ns > s->heard_ns && q->now_ns - s->heard_ns > q->silent_ns))
		return HR_STREAM_SILENT;
	return HR_STREAM_RUNNING;
}

static int make_stream(struct hr_query *q, struct hr_qstream *to, const struct hr_stream *s)
{
	to->s = s;
	to->state = life(q, s);
	to->cluster = hr_string_ofz(&q->pool, s->cluster);
	to->job = hr_string_ofz(&q->pool, s->job);
	to->node = hr_string_ofz(&q->pool, s->node);
	to->boot = hr_string_ofz(&q->pool, s->boot_id);
	pthread_mutex_init(&to->names.lock, NULL);
	to->mounts = calloc(s->n_mounts + 1, sizeof(*to->mounts));
	to->damaged = calloc((size_t)s->n_frames / 8 + 1, 1);
	if (to->mounts == NULL || to->damaged == NULL)
		return -ENOMEM;
	for (uint32_t i = 1; i < s->n_mounts; i++) {
		const Headrace__Mount *m = s->mounts[i];

		if (m == NULL)
			continue;
		to->mounts[i].path = hr_string_of(&q->pool, m->path.data, m->path.len);
		to->mounts[i].fs_type = hr_string_ofz(&q->pool, m->fs_type);
	}
	return 0;
}

static int make_streams(struct hr_query *q)
{
	const struct hr_stream *list;
	size_t n = hr_catalog_streams(q->catalog, &list);
	int r = 0;

	q->streams = calloc(n + 1, sizeof(*q->streams));
	if (q->streams == NULL)
		return -ENOMEM;
	for (; r == 0 && q->n_streams < n; q->n_streams++)
		r = make_stream(q, &q->streams[q->n_streams], &list[q->n_streams]);
	return r;
}

static int run_own(struct hr_query *q, const char *sql, char **ret_error)
{
	duckdb_result result;
	int r = 0;

	if (hr_duckdb.query(q->connection, sql, &result) != DuckDBSuccess)
		r = hr_text_fail(-EIO, ret_error, "cannot configure DuckDB: %s",
				 hr_duckdb.result_error(&result));
	hr_duckdb.destroy_result(&result);
	return r;
}

/* Runs the statement that was written to `to`, a stream to *sql, and frees both. */
static int run_written(struct hr_query *q, FILE *to, char **sql, char **ret_error)
{
	int r = fclose(to) == 0 ? run_own(q, *sql, ret_error) : -ENOMEM;

	free(*sql);
	return r;
}

static int open_database(struct hr_query *q, const struct hr_query_options *o, char **ret_error)
{
	char threads[16], memory[32], spill[32];
	const char *const settings[][2] = {
	    {"threads", threads},
	    {"memory_limit", memory},
	    {"temp_directory", o->spill != NULL ? o->spill : ""},
	    {"max_temp_directory_size", o->spill_bytes != 0 ? spill : NULL},
	    {"preserve_insertion_order", "false"}, /* otherwise, a scan uses one thread */
	    {"autoinstall_known_extensions", "false"},
	    {"autoload_known_extensions", "false"},
	    {"allow_community_extensions", "false"},
	};
	duckdb_config config = NULL;
	char *error = NULL;
	int r = -EIO;

	snprintf(threads, sizeof(threads), "%u", q->threads);
	snprintf(memory, sizeof(memory), "%lluKiB",
		 (unsigned long long)(o->memory_bytes != 0 ? o->memory_bytes : half_of_memory()) >>
		     10);
	snprintf(spill, sizeof(spill), "%lluKiB", (unsigned long long)o->spill_bytes >> 10);
	if (hr_duckdb.create_config(&config) != DuckDBSuccess)
		return -ENOMEM;
	for (size_t i = 0; i < sizeof(settings) / sizeof(settings[0]); i++) {
		if (settings[i][1] == NULL)
			continue;
		if (hr_duckdb.set_config(config, settings[i][0], settings[i][1]) != DuckDBSuccess) {
			(void)hr_text_fail(0, ret_error, "this DuckDB (%s) has no setting %s",
					   hr_duckdb.library_version(), settings[i][0]);
			goto out;
		}
	}
	if (hr_duckdb.open_ext(NULL, &q->database, config, &error) != DuckDBSuccess) {
		(void)hr_text_fail(0, ret_error, "cannot start DuckDB: %s",
				   error != NULL ? error : "");
		hr_duckdb.free(error);
		goto out;
	}
	if (hr_duckdb.connect(q->database, &q->connection) == DuckDBSuccess)
		r = 0;
out:
	hr_duckdb.destroy_config(&config);
	return r;
}

/* Whether a job has several streams of one node (adjacent ones), because headraced restarted. */
static bool node_streams_repeat(const struct hr_query *q)
{
	for (size_t i = 1; i < q->n_streams; i++) {
		const struct hr_stream *a = q->streams[i - 1].s, *b = q->streams[i].s;

		if (hr_same_job(a, b) && strcmp(a->node, b->node) == 0)
			return true;
	}
	return false;
}

/* Prints a view's columns. `merge_times`: first_ns and last_ns are those of all streams. */
static void print_columns(FILE *to, enum hr_sql_table_id id, bool merge_times)
{
	for (unsigned i = 0; i < hr_tables[id].n_columns; i++) {
		const char *name = hr_table_column(id, i)->name;
		const char *comma = i == 0 ? "" : ", ";

		if (hr_table_column(id, i)->hidden)
			continue;
		if (merge_times && strcmp(name, "first_ns") == 0)
			fprintf(to, "%smin(\"%s\") AS \"%s\"", comma, name, name);
		else if (merge_times && strcmp(name, "last_ns") == 0)
			fprintf(to, "%smax(\"%s\") AS \"%s\"", comma, name, name);
		else
			fprintf(to, "%s\"%s\"", comma, name);
	}
}

static int create_view(struct hr_query *q, enum hr_sql_table_id id, char **ret_error)
{
	const struct hr_sql_table *t = &hr_tables[id];
	bool merge = id == HR_TABLE_FILES && node_streams_repeat(q);
	char *sql = NULL;
	size_t bytes;
	FILE *to = open_memstream(&sql, &bytes);

	if (to == NULL)
		return -ENOMEM;
	fprintf(to, "CREATE VIEW \"%s\" AS SELECT %s", t->name,
		id == HR_TABLE_LABELS ? "DISTINCT " : "");
	print_columns(to, id, merge);
	fprintf(to, " FROM hr_%s()%s", t->name, merge ? " GROUP BY ALL" : "");
	return run_written(q, to, &sql, ret_error);
}

static int create_macros(struct hr_query *q, char **ret_error)
{
	char *sql = NULL;
	size_t bytes;
	FILE *to = open_memstream(&sql, &bytes);

	if (to == NULL)
		return -ENOMEM;
	hr__macros_print(to);
	return run_written(q, to, &sql, ret_error);
}

/* Forbids access to files (except the output file), extensions and changes of settings. */
static int lock_down(struct hr_query *q, char **ret_error)
{
	char *sql = NULL;
	size_t bytes;
	FILE *to;
	int r;

	if (q->parquet != NULL) {
		to = open_memstream(&sql, &bytes);
		if (to == NULL)
			return -ENOMEM;
		fputs("SET allowed_paths = [", to);
		hr_text_sql(to, q->parquet);
		fputs("]", to);
		r = run_written(q, to, &sql, ret_error);
		if (r < 0)
			return r;
	}
	return run_own(q, "SET enable_external_access = false; SET lock_configuration = true",
		       ret_error);
}

/* Makes a query without a database. NULL: no memory. */
static struct hr_query *make_query(const struct hr_catalog *catalog,
				   const struct hr_query_options *options)
{
	struct hr_query *q = calloc(1, sizeof(*q));

	if (q == NULL)
		return NULL;
	q->catalog = catalog;
	q->no_prune = options->no_prune;
	q->threads = options->threads != 0 ? options->threads : usable_cpus();
	hr_pool_init(&q->pool);
	hr_prune_init(&q->prune);
	pthread_mutex_init(&q->damage_lock, NULL);
	pthread_mutex_init(&q->diagnosis_lock, NULL);
	if (options->parquet != NULL)
		q->parquet = strdup(options->parquet);
	q->now_ns = options->now_ns != 0 ? options->now_ns : hr_now_ns(CLOCK_REALTIME);
	q->silent_ns = options->silent_ns != 0 ? options->silent_ns : HR_SILENT_NS;
	if (make_streams(q) == 0)
		return q;
	hr_query_free(q);
	return NULL;
}

int hr_query_new_without_sql(const struct hr_catalog *catalog, struct hr_query **ret)
{
	*ret = make_query(catalog, &(const struct hr_query_options){0});
	return *ret != NULL ? 0 : -ENOMEM;
}

int hr_query_new(const struct hr_catalog *catalog, const struct hr_query_options *options,
		 struct hr_query **ret, char **ret_error)
{
	struct hr_query *q;
	int r = hr_duckdb_load(ret_error);

	if (r < 0)
		return r;
	q = make_query(catalog, options);
	if (q == NULL)
		return -ENOMEM;
	r = open_database(q, options, ret_error);
	if (r == 0)
		r = hr_events_register(q);
	if (r == 0)
		r = hr_rows_register(q);
	for (unsigned i = 0; r == 0 && i < HR_TABLE_END; i++)
		r = create_view(q, i, ret_error);
	if (r == 0)
		r = create_macros(q, ret_error);
	if (r == 0)
		r = lock_down(q, ret_error);
	if (r < 0)
		hr_query_free(q);
	else
		*ret = q;
	return r;
}

void hr_query_free(struct hr_query *q)
{
	if (q == NULL)
		return;
	if (q->connection != NULL)
		hr_duckdb.disconnect(&q->connection);
	if (q->database != NULL)
		hr_duckdb.close(&q->database);
	for (size_t i = 0; i < q->n_streams; i++) {
		hr_query_names_done(&q->streams[i].names);
		free(q->streams[i].mounts);
		free(q->streams[i].damaged);
	}
	if (q->diagnosis != NULL)
		hr_diagnosis_done(q->diagnosis);
	free(q->diagnosis);
	free(q->streams);
	free(q->parquet);
	free(q->first_damage);
	hr_prune_done(&q->prune);
	hr_pool_done(&q->pool);
	pthread_mutex_destroy(&q->damage_lock);
	pthread_mutex_destroy(&q->diagnosis_lock);
	free(q);
}

/* ---- damage and progress ---- */

int hr_query_damage(struct hr_query *q, const struct hr_qstream *st, uint32_t frame, int error)
{
	uint8_t bit = (uint8_t)(1u << (frame % 8));
	bool again;

	if (error == -ENOMEM)
		return error;
	pthread_mutex_lock(&q->damage_lock);
	again = st->damaged[frame / 8] & bit;
	st->damaged[frame / 8] |= bit;
	q->damaged += !again;
	if (q->first_damage == NULL)
		(void)hr_text_fail(0, &q->first_damage, "job %s, node %s: frame with seq %llu: %s",
				   st->s->job, st->s->node,
				   (unsigned long long)st->s->frames[frame].seq,
				   error == -EBADMSG ? "damaged" : strerrordesc_np(-error));
	pthread_mutex_unlock(&q->damage_lock);
	return 0;
}

uint64_t hr_query_damaged(struct hr_query *q, const char **ret_first)
{
	uint64_t n;

	pthread_mutex_lock(&q->damage_lock);
	n = q->damaged;
	*ret_first = q->first_damage;
	pthread_mutex_unlock(&q->damage_lock);
	return n;
}

void hr_query_scan(struct hr_query *q, struct hr_query_scan *ret)
{
	ret->batches_read = atomic_load(&q->batches_read);
	ret->batches_pruned = atomic_load(&q->batches_pruned);
	ret->batches = atomic_load(&q->batches);
}

const char *hr_query_table_name(unsigned i)
{
	return i < HR_TABLE_END ? hr_tables[i].name : NULL;
}

void hr_query_interrupt(struct hr_query *q)
{
	atomic_store(&q->interrupted, true);
	hr_duckdb.interrupt(q->connection);
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * internal.h - struct hr_query, which all files of a query share
 *
 * After hr_query_new, only members with a lock and atomic members change. Scans do not copy
 * strings: the strings are in the catalogue, in constant tables or in the query's pool, which
 * outlive results.
 */
#ifndef HEADRACE_QUERY_TABLES_INTERNAL_H
#define HEADRACE_QUERY_TABLES_INTERNAL_H

#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

#include "common/arena.h"
#include "query/tables/columns.h"
#include "query/prune/prune.h"
#include "query/duckdb/statement.h"

/* ---- strings ---- */
struct hr_pool {
	pthread_mutex_t lock;
	struct hr_arena arena;
};
void hr_pool_init(struct hr_pool *p);
void hr_pool_done(struct hr_pool *p);
void *hr_pool_get(struct hr_pool *p, size_t bytes); /* NULL: out of memory */

/*
 * Makes a string for DuckDB. A text of up to 12 bytes is copied into it. A longer text is not
 * copied, so it must stay valid.
 */
static inline duckdb_string_t hr_string(const char *text, size_t n)
{
	duckdb_string_t s = {0};

	s.value.inlined.length = (uint32_t)n;
	if (n <= sizeof(s.value.inlined.inlined)) {
		if (n > 0)
			memcpy(s.value.inlined.inlined, text, n);
	} else {
		memcpy(s.value.pointer.prefix, text, sizeof(s.value.pointer.prefix));
		s.value.pointer.ptr = (char *)text;
	}
	return s;
}

static inline const char *hr_string_text(const duckdb_string_t *s)
{
	return s->value.inlined.length <= sizeof(s->value.inlined.inlined)
		   ? s->value.inlined.inlined
		   : s->value.pointer.ptr;
}

/*
 * Returns any bytes as text. Printable ASCII is not copied, so the bytes must stay valid. Other
 * bytes are escaped (common/text.h), in a copy in the pool. If memory is short, the string is
 * empty: DuckDB then reports the failure.
 */
duckdb_string_t hr_string_of(struct hr_pool *pool, const void *bytes, size_t n);
static inline duckdb_string_t hr_string_ofz(struct hr_pool *pool, const char *text)
{
	return hr_string_of(pool, text, text != NULL ? strlen(text) : 0);
}

/* Returns a copy of the text, escaped like by hr_string_of. */
duckdb_string_t hr__string_copy(struct hr_pool *pool, const char *text);

/* ---- streams ---- */
/* Names of a stream's files: arrays indexed by file number (0: no file), made when needed. */
enum hr_names_part {
	HR_NAMES_INFO = 1, /* hash, mount, scope */
	HR_NAMES_PATH = 2,
	HR_NAMES_BASE = 4,
	HR_NAMES_PATTERN = 8,
};

struct hr_query_names {
	pthread_mutex_t lock;
	/* Which arrays exist (HR_NAMES_*), stored with release order after the array. */
	_Atomic unsigned ready;
	uint32_t n; /* length of each array: number of files + 1 */
	uint64_t *hash;
	uint32_t *mount; /* index in hr_qstream.mounts */
	uint8_t *scope;	 /* 1: runtime */
	duckdb_string_t *path;
	duckdb_string_t *base;
	uint32_t *pattern;	   /* index in `patterns`; 0: none */
	duckdb_string_t *patterns; /* patterns[0] is unused */
};

struct hr_qmount {
	duckdb_string_t path;
	duckdb_string_t fs_type;
};

enum hr_stream_life {
	HR_STREAM_RUNNING,
	HR_STREAM_SILENT, /* the stream has not ended, but the collector receives nothing */
	HR_STREAM_CUT,	  /* the stream has no end, and no process writes it */
	HR_STREAM_ENDED
};

struct hr_qstream {
	const struct hr_stream *s;
	enum hr_stream_life state;
	duckdb_string_t cluster, job, node, boot;
	/* Arrays of s->n_mounts elements. mount_known[] is false for ids without a mount. */
	struct hr_qmount *mounts;
	bool *mount_known;
	/* Frames whose damage was counted: a bitmap that hr_query.damage_lock protects. */
	uint8_t *damaged;
	struct hr_query_names names;
};

/*
 * Makes the arrays of `parts` (HR_NAMES_*) that do not exist yet. Any thread may call it; the other
 * callers wait until the arrays exist. Returns 0 or -ENOMEM.
 */
int hr__names_need(struct hr_query *q, struct hr_qstream *st, unsigned parts);
void hr_query_names_done(struct hr_query_names *names);

/*
 * Finds the files whose path is in the set. *ret_bits is a malloc'ed bitmap: bit i % 8 of byte i /
 * 8 for file number i. Makes no array. Any thread may call it. Returns 0 or -ENOMEM.
 */
int hr__names_match(struct hr_query *q, const struct hr_qstream *st,
		    const struct hr_prune_set *paths, uint8_t **ret_bits);

static inline int64_t hr_wall_ns(const struct hr_qstream *st, uint64_t boot_ns)
{
	return hr_stream_real_ns(st->s, boot_ns);
}

/* Returns the end of a region. A damaged store can contain any time, so the sum may not fit. */
static inline int64_t hr_end_ns(int64_t start_ns, uint64_t dur_ns)
{
	int64_t end;

	return __builtin_add_overflow(start_ns, dur_ns, &end) ? INT64_MAX : end;
}

/* ---- tables ---- */
enum hr_sql_type { HR_SQL_BIGINT, HR_SQL_UBIGINT, HR_SQL_VARCHAR, HR_SQL_HIST };
#define HR_HIST_BINS 64u

struct hr_sql_column {
	const char *name;
	enum hr_sql_type type;
};

/* A table function: its columns are those of the view and then hidden ones. */
struct hr_sql_table {
	const char *name;
	const struct hr_sql_column *columns;
	unsigned n_columns;
	unsigned n_visible;
};

/* Numbers of columns: HR_EVENTS_cluster... HR_EVENTS_END, and the same for each table */
#define HR__E_EVENTS(name, type)	 HR_EVENTS_##name,
#define HR__E_ROLLUPS(name, type)	 HR_ROLLUPS_##name,
#define HR__E_FILE_RECORDS(name, type)	 HR_FILE_RECORDS_##name,
#define HR__E_PROCESSES(name, type)	 HR_PROCESSES_##name,
#define HR__E_FILES(name, type)		 HR_FILES_##name,
#define HR__E_REGIONS(name, type)	 HR_REGIONS_##name,
#define HR__E_LABELS(name, type)	 HR_LABELS_##name,
#define HR__E_LEVELS(name, type)	 HR_LEVELS_##name,
#define HR__E_JOBS(name, type)		 HR_JOBS_##name,
#define HR__E_NODES(name, type)		 HR_NODES_##name,
#define HR__E_LOSSES(name, type)	 HR_LOSSES_##name,
#define HR__E_KERNEL_RECORDS(name, type) HR_KERNEL_RECORDS_##name,
#define HR__E_PARTS(name, type)		 HR_PARTS_##name,
#define HR__E_WAITS(name, type)		 HR_WAITS_##name,
#define HR__E_REPLAYS(name, type)	 HR_REPLAYS_##name,
#define HR__E_FINDINGS(name, type)	 HR_FINDINGS_##name,
#define X(table, TABLE)                                                                            \
	enum {                                                                                     \
		HR_COLUMNS_##TABLE(HR__E_##TABLE) HR_HIDDEN_##TABLE(HR__E_##TABLE)                 \
		    HR_##TABLE##_END                                                               \
	};
HR_TABLES(X)
#undef X

enum hr_sql_table_id {
#define X(table, TABLE) HR_TABLE_##TABLE,
	HR_TABLES(X)
#undef X
	    HR_TABLE_END
};
extern const struct hr_sql_table hr_tables[HR_TABLE_END];

/* How many first columns all tables share, and how many all tables with process columns share. */
enum { HR_STREAM_COLUMNS = HR_EVENTS_proc, HR_PROCESS_COLUMNS = HR_EVENTS_tid };

/* ---- the query ---- */
struct hr_query {
	const struct hr_catalog *catalog;
	struct hr_qstream *streams;
	size_t n_streams;
	struct hr_pool pool;
	unsigned threads;
	/* The wall clock, and the time without messages after which a stream is silent. */
	uint64_t now_ns, silent_ns;
	bool no_prune;
	char *parquet;

	duckdb_database database;
	duckdb_connection connection;

	/* What the running statement needs not read. It is set before the statement starts. */
	struct hr_prune prune;
	_Atomic uint64_t batches_read, batches_pruned, batches;
	_Atomic bool interrupted; /* for scans that take long before they return rows */

	/* NULL: no table has needed it yet */
	struct hr_diagnosis *diagnosis;
	pthread_mutex_t diagnosis_lock;

	pthread_mutex_t damage_lock;
	uint64_t damaged;
	char *first_damage;
};

/*
 * Counts an unreadable frame for the notes, once, and returns 0. -ENOMEM is no damage: only returns
 * it. Any thread may call it.
 */
int hr_query_damage(struct hr_query *q, const struct hr_qstream *st, uint32_t frame, int error);

/* Register hr_events(), hr_busy(), hr_during() and the functions of rows.c. Return 0 or -EIO. */
int hr_events_register(struct hr_query *q);
int hr_busy_register(struct hr_query *q);
int hr_during_register(struct hr_query *q);
int hr_rows_register(struct hr_query *q);

void hr_table_bind(duckdb_bind_info info, const struct hr_sql_table *table);

/* The callbacks of a table function. `bind` gets the argument `extra`. Returns 0 or -EIO. */
struct hr_table_function {
	duckdb_table_function_bind_t bind;
	duckdb_table_function_init_t init, init_local;
	duckdb_table_function_t scan;
	/* Names of the parameters, all VARCHAR, and then NULL. NULL: no parameters. */
	const char *const *parameters;
};
int hr_table_register(struct hr_query *q, const char *name, void *extra,
		      const struct hr_table_function *table);

/* ---- cells ---- */
struct hr_query_out {
	duckdb_vector vector;
	void *data;
	uint64_t *validity; /* NULL: no row is NULL so far */
};

static inline struct hr_query_out hr_query_out_of(duckdb_vector vector)
{
	return (struct hr_query_out){vector, hr_duckdb.vector_get_data(vector), NULL};
}

static inline void hr__out_null(struct hr_query_out *o, size_t row)
{
	if (o->validity == NULL) {
		hr_duckdb.vector_ensure_validity_writable(o->vector);
		o->validity = hr_duckdb.vector_get_validity(o->vector);
	}
	o->validity[row / 64] &= ~(UINT64_C(1) << (row % 64));
}

static inline void hr_out_text(struct hr_query_out *o, size_t row, duckdb_string_t text, bool null)
{
	((duckdb_string_t *)o->data)[row] = text;
	if (null)
		hr__out_null(o, row);
}

static inline void hr_out_number(struct hr_query_out *o, size_t row, uint64_t number, bool null)
{
	((uint64_t *)o->data)[row] = number;
	if (null)
		hr__out_null(o, row);
}

#endif

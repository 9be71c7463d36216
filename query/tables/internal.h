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
	struct hr_qmount *mounts; /* s->n_mounts elements: see hr_query_mount */
	/* Frames whose damage was counted: a bitmap that hr_query.damage_lock protects. */
	uint8_t *damaged;
	struct hr_query_names names;
};

/* Returns the mount with this number; NULL: unknown. */
static inline const struct hr_qmount *hr_query_mount(const struct hr_qstream *st, uint32_t mount)
{
	return mount > 0 && mount < st->s->n_mounts && st->s->mounts[mount] != NULL
		   ? &st->mounts[mount]
		   : NULL;
}

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

/* Whether two streams are of the same (cluster, job, attempt). */
static inline bool hr_same_job(const struct hr_stream *a, const struct hr_stream *b)
{
	return a->attempt == b->attempt && strcmp(a->job, b->job) == 0 &&
	       strcmp(a->cluster, b->cluster) == 0;
}

/* ---- tables ---- */
enum hr_sql_type { HR_SQL_BIGINT, HR_SQL_UBIGINT, HR_SQL_VARCHAR, HR_SQL_HIST };
#define HR_HIST_BINS 64u

/*
 * FROM of tables.def. SUM to HIST are of all messages of a row, and those from FILE_PATH on of its
 * file; those from FILE_SCOPE on need HR_NAMES_INFO.
 */
/* clang-format off */
enum hr_from {
	HR_FROM_MADE,
	HR_FROM_NUMBER, HR_FROM_KNOWN, HR_FROM_GIVEN, HR_FROM_PLUS1, HR_FROM_TIME,
	HR_FROM_TEXT, HR_FROM_COPY, HR_FROM_PLAIN,
	HR_FROM_OP, HR_FROM_API, HR_FROM_CLASS, HR_FROM_MOUNT, HR_FROM_FS_TYPE, HR_FROM_SCOPE,
	HR_FROM_SUM, HR_FROM_MAX, HR_FROM_FIRST, HR_FROM_LAST, HR_FROM_HIST,
	HR_FROM_FILE_PATH, HR_FROM_FILE_PATTERN, HR_FROM_FILE_SCOPE, HR_FROM_FILE_KNOWN_SCOPE,
	HR_FROM_FILE_MOUNT, HR_FROM_FILE_FS_TYPE, HR_FROM_FILE_ID,
};

/* The C type of the member. 64: a signed or unsigned number; LIST: of numbers. */
enum hr_member_type {
	HR_MEMBER_BOOL, HR_MEMBER_INT32, HR_MEMBER_UINT32, HR_MEMBER_64,
	HR_MEMBER_CHARS, HR_MEMBER_BYTES, HR_MEMBER_STRING, HR_MEMBER_LIST,
};
/* clang-format on */

struct hr_sql_column {
	const char *name;
	enum hr_sql_type type;
	bool hidden;
	enum hr_from from;
	enum hr_member_type member;
	size_t offset; /* of the member; of a list: of its length */
	size_t list;   /* offset of the array of a list */
};

/* A table function. Its first columns are shared with other tables. */
struct hr_sql_table {
	const char *name;
	const struct hr_sql_column *own;
	unsigned n_shared;
	unsigned n_columns; /* with the shared ones */
};

/*
 * Numbers of columns: HR_EVENTS_tid... HR_EVENTS_END, and the same for each table. Shared columns
 * have the numbers HR_STREAM_cluster... HR_STREAM_END and HR_PROCESS_proc... HR_PROCESS_END.
 */
/* clang-format off */
#define HR_SHARED(table, shared) enum { HR__##table##_BEFORE = (shared) - 1,
#define HR_TABLE(table, name, shared, row) HR_SHARED(table, shared)
#define HR_COLUMN(table, name, type, from, sentence) HR_##table##_##name,
#define HR_END(table) HR_##table##_END };
#include "query/tables/tables.def"
/* clang-format on */

enum hr_sql_table_id {
#define HR_TABLE(table, name, shared, row) HR_TABLE_##table,
#include "query/tables/tables.def"
	HR_TABLE_END = HR_TABLE_BUSY /* the functions from here on have no view */
};
extern const struct hr_sql_table hr_tables[];

const struct hr_sql_column *hr_table_column(enum hr_sql_table_id table, unsigned i);

/*
 * Stores the values of a process in the columns `proc` to `loader_worker`. HR_VALUE_NULL: unknown.
 */
#define HR_VALUE_NULL INT64_MIN
void hr__process_values(const struct hr_stream *s, uint64_t proc, int64_t *values);

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

/* Register hr_events() and the functions of rows.c. Return 0 or -EIO. */
int hr_events_register(struct hr_query *q);
int hr_rows_register(struct hr_query *q);

void hr_table_bind(duckdb_bind_info info, enum hr_sql_table_id table);

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

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * duckdb_api.h - DuckDB's C API, loaded at run time
 *
 * Nodes need no DuckDB, so no program links against it. Instead, hr_duckdb_load() fills the struct
 * hr_duckdb with dlopen. Any thread may call it. The types are declared here, so a build needs no
 * duckdb.h. tests/query/duckdb_check.c compares the declarations with those of duckdb.h.
 */
#ifndef HEADRACE_QUERY_DUCKDB_DUCKDB_API_H
#define HEADRACE_QUERY_DUCKDB_DUCKDB_API_H

#include <stdbool.h>
#include <stdint.h>

#define HR_DUCKDB_CONSTANTS(X)                                                                     \
	X(DUCKDB_PENDING_RESULT_NOT_READY, 1)                                                      \
	X(DUCKDB_PENDING_ERROR, 2)                                                                 \
	X(DUCKDB_PENDING_NO_TASKS_AVAILABLE, 3)                                                    \
	X(DUCKDB_TYPE_BOOLEAN, 1)                                                                  \
	X(DUCKDB_TYPE_TINYINT, 2)                                                                  \
	X(DUCKDB_TYPE_SMALLINT, 3)                                                                 \
	X(DUCKDB_TYPE_INTEGER, 4)                                                                  \
	X(DUCKDB_TYPE_BIGINT, 5)                                                                   \
	X(DUCKDB_TYPE_UTINYINT, 6)                                                                 \
	X(DUCKDB_TYPE_USMALLINT, 7)                                                                \
	X(DUCKDB_TYPE_UINTEGER, 8)                                                                 \
	X(DUCKDB_TYPE_UBIGINT, 9)                                                                  \
	X(DUCKDB_TYPE_FLOAT, 10)                                                                   \
	X(DUCKDB_TYPE_DOUBLE, 11)                                                                  \
	X(DUCKDB_TYPE_TIMESTAMP, 12)                                                               \
	X(DUCKDB_TYPE_DATE, 13)                                                                    \
	X(DUCKDB_TYPE_TIME, 14)                                                                    \
	X(DUCKDB_TYPE_INTERVAL, 15)                                                                \
	X(DUCKDB_TYPE_HUGEINT, 16)                                                                 \
	X(DUCKDB_TYPE_VARCHAR, 17)                                                                 \
	X(DUCKDB_TYPE_BLOB, 18)                                                                    \
	X(DUCKDB_TYPE_DECIMAL, 19)                                                                 \
	X(DUCKDB_TYPE_TIMESTAMP_S, 20)                                                             \
	X(DUCKDB_TYPE_TIMESTAMP_MS, 21)                                                            \
	X(DUCKDB_TYPE_TIMESTAMP_NS, 22)                                                            \
	X(DUCKDB_TYPE_ENUM, 23)                                                                    \
	X(DUCKDB_TYPE_LIST, 24)                                                                    \
	X(DUCKDB_TYPE_STRUCT, 25)                                                                  \
	X(DUCKDB_TYPE_MAP, 26)                                                                     \
	X(DUCKDB_TYPE_UUID, 27)                                                                    \
	X(DUCKDB_TYPE_TIMESTAMP_TZ, 31)                                                            \
	X(DUCKDB_TYPE_UHUGEINT, 32)                                                                \
	X(DUCKDB_TYPE_ARRAY, 33)                                                                   \
	X(DUCKDB_TYPE_SQLNULL, 36)                                                                 \
	X(DUCKDB_STATEMENT_TYPE_INVALID, 0)                                                        \
	X(DUCKDB_STATEMENT_TYPE_SELECT, 1)                                                         \
	X(DUCKDB_STATEMENT_TYPE_EXPLAIN, 4)                                                        \
	X(DUCKDB_STATEMENT_TYPE_CREATE, 7)                                                         \
	X(DUCKDB_STATEMENT_TYPE_COPY, 11)                                                          \
	X(DUCKDB_ERROR_INTERRUPT, 29)                                                              \
	X(DuckDBSuccess, 0)                                                                        \
	X(DuckDBError, 1)

#ifdef HR_REAL_DUCKDB_H
#include HR_REAL_DUCKDB_H
#else

#define X(name, value) name = (value),
enum { HR_DUCKDB_CONSTANTS(X) };
#undef X

typedef unsigned duckdb_state, duckdb_type, duckdb_statement_type, duckdb_error_type,
    duckdb_pending_state;
typedef uint64_t idx_t;
typedef struct _duckdb_database *duckdb_database;
typedef struct _duckdb_connection *duckdb_connection;
typedef struct _duckdb_config *duckdb_config;
typedef struct _duckdb_prepared_statement *duckdb_prepared_statement;
typedef struct _duckdb_extracted_statements *duckdb_extracted_statements;
typedef struct _duckdb_pending_result *duckdb_pending_result;
typedef struct _duckdb_logical_type *duckdb_logical_type;
typedef struct _duckdb_data_chunk *duckdb_data_chunk;
typedef struct _duckdb_vector *duckdb_vector;
typedef struct _duckdb_value *duckdb_value;
typedef struct _duckdb_table_function *duckdb_table_function;
typedef struct _duckdb_bind_info *duckdb_bind_info;
typedef struct _duckdb_init_info *duckdb_init_info;
typedef struct _duckdb_function_info *duckdb_function_info;
typedef void (*duckdb_delete_callback_t)(void *data);
typedef void (*duckdb_table_function_bind_t)(duckdb_bind_info info);
typedef void (*duckdb_table_function_init_t)(duckdb_init_info info);
typedef void (*duckdb_table_function_t)(duckdb_function_info info, duckdb_data_chunk output);

typedef struct {
	idx_t deprecated_counts[3];
	void *deprecated_columns;
	char *deprecated_error_message;
	void *internal_data;
} duckdb_result;

/* A string of up to 12 bytes is in the structure. Of a longer one, it has 4 bytes and a pointer. */
typedef struct {
	union {
		struct {
			uint32_t length;
			char prefix[4];
			char *ptr;
		} pointer;
		struct {
			uint32_t length;
			char inlined[12];
		} inlined;
	} value;
} duckdb_string_t;

typedef struct {
	uint64_t offset;
	uint64_t length;
} duckdb_list_entry;

typedef struct {
	uint64_t lower;
	int64_t upper;
} duckdb_hugeint;

typedef struct {
	int32_t months;
	int32_t days;
	int64_t micros;
} duckdb_interval;

#endif /* HR_REAL_DUCKDB_H */

/* Valid after hr_duckdb_load(). The member hr_duckdb.query is duckdb_query(), and so on. */
struct hr_duckdb {
	void *handle;
#define HR_DUCKDB(ret, name, params) ret(*name) params; // NOLINT(bugprone-macro-parentheses): types
#include "query/duckdb/duckdb_api.def"
#undef HR_DUCKDB
};
extern struct hr_duckdb hr_duckdb;

/*
 * Loads libduckdb.so, once per process. If $HEADRACE_DUCKDB (a file or folder) is set, tries only
 * this one. Otherwise, tries in this order: the folder of the program, ../libexec/headrace,
 * third_party/duckdb of the sources, $XDG_DATA_HOME/headrace, /usr/lib/headrace, the library path
 * of the system. Returns 0, -ENOENT (not found) or -ELIBACC (unusable). *ret_error (malloc'ed) has
 * advice.
 */
int hr_duckdb_load(char **ret_error);

#endif

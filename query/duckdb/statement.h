/* SPDX-License-Identifier: Apache-2.0 */
/* statement.h - options of a statement, its parameters, and the sink that receives its answer */
#ifndef HEADRACE_QUERY_DUCKDB_STATEMENT_H
#define HEADRACE_QUERY_DUCKDB_STATEMENT_H

#include <stdbool.h>
#include <stdint.h>

#include "query/duckdb/duckdb_api.h"

#define HR_SILENT_NS UINT64_C(60000000000)

struct hr_query_options {
	uint64_t memory_bytes; /* limit of DuckDB's memory; 0: half of the machine's memory */
	unsigned threads;      /* 0: one for each CPU that this process may use */
	/* Folder for data beyond the memory limit. NULL: a query that needs one fails. */
	const char *spill;
	const char *parquet;  /* the only file that hr_query_parquet may write; NULL: none */
	uint64_t spill_bytes; /* maximum size of `spill`; 0: the free space of the disk */
	uint64_t now_ns;      /* wall clock; 0: now */
	/* a stream is silent after this time without messages; 0: HR_SILENT_NS */
	uint64_t silent_ns;
	bool no_prune; /* read all batches of events (for tests) */
};

struct hr_query;

/* The value of a parameter `$name` of the SQL. `text` NULL: SQL NULL. */
struct hr_query_arg {
	const char *name;
	const char *text;
	enum { HR_ARG_VARCHAR, HR_ARG_BIGINT, HR_ARG_DOUBLE } type;
};

/*
 * Receives an answer in chunks. A negative result ends the query with this error. `begin` and `end`
 * may be NULL.
 */
struct hr_query_sink {
	/* receives names and types of columns; *ret_error: what is wrong with one (malloc'ed) */
	int (*begin)(void *self, duckdb_result *result, char **ret_error);
	int (*chunk)(void *self, duckdb_data_chunk chunk);
	int (*end)(void *self);
	void *self;
};

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* statement.h - options of a statement, its parameters, and the sink that receives its answer */
#ifndef HEADRACE_QUERY_DUCKDB_STATEMENT_H
#define HEADRACE_QUERY_DUCKDB_STATEMENT_H

#include <stdbool.h>
#include <stdint.h>

#include "query/duckdb/duckdb_api.h"

#define HR_SILENT_NS UINT64_C(60000000000)

struct hr_query_options {
	uint64_t memory_bytes; /* DuckDB's memory limit; 0: half of the machine's memory */
	unsigned threads;      /* 0: one for each CPU that this process may use */
	/*
	 * Folder for data beyond the memory limit, made when needed. NULL: a query that needs it
	 * fails.
	 */
	const char *spill;
	const char *parquet;  /* the only file that hr_query_parquet may write; NULL: none */
	uint64_t spill_bytes; /* maximum size of `spill`; 0: the free space of the disk */
	uint64_t now_ns;      /* wall clock; 0: now */
	uint64_t silent_ns;   /* a stream is silent after this time without data; 0: HR_SILENT_NS */
	bool no_prune;	      /* read every batch (for tests) */
};

struct hr_query;

/* A parameter `$name` of the SQL. `text` NULL: SQL NULL. */
struct hr_query_arg {
	const char *name;
	const char *text;
	enum { HR_ARG_VARCHAR, HR_ARG_BIGINT, HR_ARG_DOUBLE } type;
};

/* Receives the answer, chunk by chunk. A negative result ends the query with this error. */
struct hr_query_sink {
	int (*begin)(void *self, duckdb_result *result); /* column names and types are known */
	int (*chunk)(void *self, duckdb_data_chunk chunk);
	int (*end)(void *self);
	void *self;
};

#endif

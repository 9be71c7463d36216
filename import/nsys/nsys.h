/* SPDX-License-Identifier: Apache-2.0 */
/* nsys.h - the state of one file of Nsight Systems while it is read; one thread */
#ifndef HEADRACE_IMPORT_NSYS_NSYS_H
#define HEADRACE_IMPORT_NSYS_NSYS_H

#include <sqlite3.h>

#include "common/map64.h"
#include "import/nest.h"

#define NSYS_COLUMNS 20u

struct nsys {
	struct hr_import_file *f;
	sqlite3 *db;
	sqlite3_stmt *string; /* a row of StringIds */
	sqlite3_stmt *own;    /* a row of HEADRACE_REGIONS; NULL: no such table */
	struct hr_import_stream *s;
	struct hr_nest *nest;
	struct hr_map64 process_of; /* pid -> number in the stream */
	struct hr_map64 named;	    /* number of a domain or category -> index of its name */
	char **names;
	uint32_t n_names, names_room;
	struct hr_map64 op_of; /* nameId -> op; 0: none */
	int64_t last_ns;
	uint64_t n_rows, n_bad, n_other;
};

/* A table, the columns that are read (NULL if missing), and the function that gets each row. */
struct nsys_table {
	const char *name;
	const char *columns[NSYS_COLUMNS];
	/* 0; -EBADMSG: the row is not valid; other errors are fatal. */
	int (*row)(struct nsys *n, sqlite3_stmt *row);
	const char *where; /* NULL: all rows */
};

/* nsys_rows.c */
extern const struct nsys_table hr__nsys_names, hr__nsys_ranges, hr__nsys_kernels, hr__nsys_memcpys,
    hr__nsys_memsets, hr__nsys_runtime, hr__nsys_syncs, hr__nsys_own_calls, hr__nsys_calls,
    hr__nsys_processes;

#endif

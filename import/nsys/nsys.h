/* SPDX-License-Identifier: Apache-2.0 */
/* nsys.h - the state of one file of Nsight Systems while it is read; one thread */
#ifndef HEADRACE_IMPORT_NSYS_NSYS_H
#define HEADRACE_IMPORT_NSYS_NSYS_H

#include <sqlite3.h>

#include "common/map64.h"
#include "import/stream.h"

#define NSYS_COLUMNS 20u

enum nsys_buffer { NSYS_NAME, NSYS_CATEGORY, NSYS_ARGS, NSYS_PATH, NSYS_BUFFERS };

/* A node, and its stream. A file that names no node has one without a name. */
struct nsys_node {
	char *name;		    /* NULL: unknown */
	int64_t number;		    /* the upper 16 bits of its global ids */
	struct hr_import_stream *s; /* NULL: not open yet */
};

/* What HEADRACE_PROCESSES has of a process. 0: unknown. */
struct nsys_own_process {
	int32_t ppid;
	uint32_t cpus, first_cpu, cpu_quota_milli;
};

struct nsys {
	struct hr_import_file *f;
	sqlite3 *db;
	sqlite3_stmt *string; /* a row of StringIds */
	sqlite3_stmt *own;    /* a row of HEADRACE_REGIONS; NULL: no such table */
	struct nsys_node *nodes;
	uint32_t n_nodes, nodes_room;
	struct hr_map64 node_of;    /* upper bits of a global id -> index of its node */
	struct nsys_node *at;	    /* node of the current row, which hr__nsys_thread sets */
	int64_t epoch_ns;	    /* wall clock at time 0; <= 0: unknown */
	int64_t before_ns;	    /* added to all times: a row may begin before time 0 */
	struct hr_map64 process_of; /* key of a process -> number in its stream */
	struct hr_map64 exe_of;	    /* key of a process -> index of its program's name */
	struct hr_map64 own_of;	    /* key of a process -> index in own_processes */
	struct nsys_own_process *own_processes;
	uint32_t n_own, own_room;
	struct hr_map64 named; /* number of a domain or category -> index of its name */
	char **names;
	uint32_t n_names, names_room;
	struct hr_map64 op_of;	   /* nameId -> op; 0: none */
	bool own_file;		   /* `headrace export` wrote it: its texts have escapes */
	char *texts[NSYS_BUFFERS]; /* texts of the current row, without escapes */
	size_t text_room[NSYS_BUFFERS];
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

/* nsys_nodes.c */
int hr__nsys_nodes_open(struct nsys *n);
void hr__nsys_nodes_done(struct nsys *n);
/* Finds or adds a thread of the process of a global id, and sets n->at. 0 or -errno. */
int hr__nsys_thread(struct nsys *n, int64_t global, uint32_t tid, uint32_t *ret);
/* The process of a global id, for which hr__nsys_thread was called. */
struct hr_import_process *hr__nsys_process(struct nsys *n, int64_t global);
/* The upper 40 bits of a global id: node and pid. */
uint64_t hr__nsys_process_key(int64_t global);

/* nsys.c: prepares a statement. NULL: a table or column is missing, or the file is damaged. */
sqlite3_stmt *hr__nsys_statement(struct nsys *n, const char *sql);

/* nsys_rows.c */
extern const struct nsys_table hr__nsys_names, hr__nsys_ranges, hr__nsys_kernels, hr__nsys_memcpys,
    hr__nsys_memsets, hr__nsys_graphs, hr__nsys_runtime, hr__nsys_syncs, hr__nsys_own_calls,
    hr__nsys_calls, hr__nsys_processes, hr__nsys_own_processes;

#endif

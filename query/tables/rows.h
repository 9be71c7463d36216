/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rows.h - all tables except events
 *
 * Each kind of table gathers the rows of a unit (one stream, or all streams) and returns single
 * cells. rows.c does everything else, and fills the columns that tables share. Threads gather
 * different units in parallel. A struct hr_rows belongs to one thread.
 */
#ifndef HEADRACE_QUERY_TABLES_ROWS_H
#define HEADRACE_QUERY_TABLES_ROWS_H

#include "query/tables/frames.h"
#include "query/tables/internal.h"

#define HR_ROW_PARAMETERS 12u

/* ---- rows of tables whose unit is all streams ---- */

/* Each of these rows begins with it. */
struct hr_row_of {
	const struct hr_qstream *st; /* of a job: its first stream, or any */
	uint64_t proc;		     /* for the columns of processes; 0: none */
};

struct hr_job_row {
	struct hr_row_of of; /* the other streams of the job follow its first one */
	size_t n_streams;
	duckdb_string_t array_job, array_task, user, account, partition, name, state;
	int64_t start_ns, end_ns; /* wall clock; 0: unknown */
	bool uid_known;
	uint32_t uid, ranks_expected, nodes_expected;
	uint64_t ranks_seen, nodes;
	bool live, silent, unfinished;
	bool killed, failed;
};

/* -1: NULL */
struct hr_replay_row {
	struct hr_row_of of;
	int64_t setting, workers, prefetch, persistent, loops;
	int64_t recorded_ns, replayed_ns, predicted_ns, low_ns, high_ns;
	const char *doubt, *refusal; /* NULL: none */
	int64_t wall_ns, checkpoint_ns, stall_ns;
};

struct hr_finding_row {
	struct hr_row_of of;
	int64_t number, lost_ns, wall_ns;
	int64_t gain_low_ns, gain_high_ns; /* -1: not known */
	int64_t rank, worker;		   /* -1: none */
	bool is_wait;
	const char *cause, *meaning;
	/* NULL: none */
	const char *whose, *object, *mount, *place, *evidence, *action, *gain_note, *avoid;
};

/* Columns by which rows of hr_busy() are not grouped are the same in all rows. */
struct hr_busy_row {
	struct hr_row_of of; /* the stream has the row's job (and node, if grouped by node) */
	uint64_t proc;
	int32_t rank, worker; /* -1: none */
	const char *class;
	uint64_t busy_ns; /* length of the union of the operations' intervals */
	uint64_t dur_ns;  /* sum of the operations' durations */
	uint64_t count;
	int64_t first_ns, last_ns; /* wall clock */
};

/* In numbers of these rows, all bits set: none, or unknown. */
struct hr_part_row {
	struct hr_row_of of;
	uint64_t epoch, step, loop_loader;
	const char *phase, *part; /* NULL: none */
	int64_t start_ns;
	uint64_t ns;
};

struct hr_wait_row {
	struct hr_row_of of;
	uint64_t epoch, step, loop_loader, batch;
	const char *phase, *part;
	int64_t start_ns, dur_ns, piece_ns, piece_dur_ns;
	uint64_t maker; /* 0: none, or unknown */
	uint32_t maker_tid;
	uint64_t ns;
};

struct hr_during_region {
	struct hr_row_of of;
	uint64_t proc;
	int32_t rank;
	uint32_t tid, depth;
	const char *kind;
	bool open;
	int64_t start_ns; /* wall clock */
	uint64_t count, dur_ns, step, epoch;
	uint64_t ops, bytes_read, bytes_written, io_ns, busy_ns;
};

/* Of these tables, which can have millions of rows, `data` has less, and `row` makes the rest. */
union hr_made_row {
	struct hr_part_row part;
	struct hr_wait_row wait;
	struct hr_during_region during;
};

/* ---- kinds ---- */

/* The rows of one unit. The kind of table owns `data`. */
struct hr_rows {
	struct hr_query *q;
	/* Values in the order of hr_row_kind.parameters. NULL: not given, or SQL NULL. */
	const char *const *parameters;
	struct hr_qstream *st; /* NULL: the unit is all streams */
	bool of_job;	       /* as in hr_row_kind; `gather` may change it */
	size_t n;
	void *data;
	size_t room;		 /* of hr_rows_add */
	union hr_made_row *made; /* memory for `row` */
};

struct hr_cell {
	bool null;
	union {
		int64_t i;
		uint64_t u;
		duckdb_string_t s;
	};
	uint64_t *hist; /* where to write a HIST cell: HR_HIST_BINS counts, all 0 */
};

struct hr_row_kind {
	enum hr_sql_table_id table; /* the table whose columns the rows have */
	const char *function;	    /* name of the table function; NULL: hr_TABLE */
	bool all;		    /* the unit is all streams, and ROW begins with hr_row_of */
	bool of_job;		    /* a row describes a whole job, so `node` is NULL */
	/*
	 * A store may have millions of rows, so DuckDB must not join the table by nested loops, and
	 * must not make the hash table of a join from it.
	 */
	bool many;
	/* At most HR_ROW_PARAMETERS names of parameters, all VARCHAR, and then NULL. NULL: none. */
	const char *const *parameters;
	/* Returns what is wrong with the values of the parameters, or NULL. */
	const char *(*check)(const char *const *parameters);
	/*
	 * Gathers the rows of a unit. `want` has bit i for column i. Damaged frames are left out,
	 * and count for the notes. Returns 0 or -ENOMEM.
	 */
	int (*gather)(struct hr_rows *rows, uint64_t want);
	/* Frees the rows, also after a failure. NULL: frees rows->data. */
	void (*done)(struct hr_rows *rows);
	/* If a unit is a stream: the process of a row, for columns of processes; 0: none. */
	uint64_t (*proc)(const struct hr_rows *rows, size_t row);
	/*
	 * Returns the ROW of tables.def (of several messages, the first one), which is valid until
	 * the next call. NULL: `cell` makes all cells.
	 */
	const void *(*row)(const struct hr_rows *rows, size_t row);
	/* Returns the number of the row's file; 0: unknown. For columns with FROM FILE_... */
	uint32_t (*file)(const struct hr_rows *rows, size_t row);
	/* Makes the cells of columns with FROM MADE. */
	void (*cell)(const struct hr_rows *rows, size_t row, unsigned column, struct hr_cell *ret);
};

/* Makes a cell of any column that follows the shared ones. */
void hr_row_cell(const struct hr_row_kind *kind, const struct hr_rows *rows, size_t row,
		 unsigned column, struct hr_cell *ret);

#define HR_WANTS(want, column) (((want) >> (column)&1) != 0)

extern const struct hr_row_kind hr__rollups_kind, hr__file_records_kind, hr__files_kind,
    hr__processes_kind, hr__levels_kind, hr__losses_kind, hr__jobs_kind, hr__labels_kind,
    hr__nodes_kind, hr_regions_kind, hr__kernel_records_kind, hr_parts_kind, hr_replays_kind,
    hr_findings_kind, hr_waits_kind, hr_part_sums_kind, hr_regions_of_kind, hr_busy_kind,
    hr_during_kind;

/* ---- for kinds ---- */

/* Adds a row, all zero, to the array rows->data of rows of `bytes` bytes. NULL: no memory. */
void *hr_rows_add(struct hr_rows *rows, size_t bytes);

/*
 * Reads the frames with regions, and adds steps and epochs (passes.h). Damaged frames are left out,
 * and count for the notes. -ENOMEM.
 */
int hr_regions_read(struct hr_query *q, const struct hr_qstream *st, struct hr_frames *ret);

/* Reads a region from rows that hr_regions_kind has gathered. */
struct hr_region;
void hr_regions_row(const struct hr_rows *rows, size_t row, struct hr_region *ret);

static inline void hr__cell_text(struct hr_cell *c, duckdb_string_t s)
{
	c->s = s;
	c->null = s.value.inlined.length == 0;
}

static inline void hr_cell_constant(struct hr_cell *c, const char *text)
{
	hr__cell_text(c, hr_string(text, text != NULL ? strlen(text) : 0));
}

/* Makes a cell, which is NULL if `value` is 0: 0 means unknown in messages of a stream. */
static inline void hr__cell_nonzero(struct hr_cell *c, uint64_t value)
{
	c->u = value;
	c->null = value == 0;
}

static inline void hr__cell_wall(struct hr_cell *c, const struct hr_qstream *st, uint64_t boot_ns)
{
	c->i = hr_wall_ns(st, boot_ns);
	c->null = boot_ns == 0;
}

/* Makes the arrays of names that the wanted columns of the table need. Returns 0 or -ENOMEM. */
int hr__file_names(const struct hr_rows *rows, uint64_t want, enum hr_sql_table_id table);

#endif

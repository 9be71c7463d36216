/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rows.h - all tables but events: rows are gathered, merged, and read cell by cell
 *
 * A kind of table gathers the rows of a unit (a stream, or the whole catalogue) and reads a cell.
 * rows.c does the rest, and fills the columns that tables share. Units are gathered in parallel; a
 * struct hr_rows belongs to one thread.
 */
#ifndef HEADRACE_QUERY_TABLES_ROWS_H
#define HEADRACE_QUERY_TABLES_ROWS_H

#include "query/tables/internal.h"

#define HR_ROW_PARAMETERS 12u

/* Rows of one unit. The kind of table owns `data`, and frees it in `done`. */
struct hr_rows {
	struct hr_query *q;
	/* the texts of hr_row_kind.parameters, in their order; NULL: not given, or SQL NULL */
	const char *const *parameters;
	struct hr_qstream *st; /* NULL: the unit is the catalogue */
	size_t n;
	void *data;
};

struct hr_cell {
	bool null;
	union {
		int64_t i;
		uint64_t u;
		duckdb_string_t s;
	};
	uint64_t *hist; /* a HIST cell goes here: HR_HIST_BINS counts, all zero */
};

struct hr_row_kind {
	enum hr_sql_table_id table;
	bool of_job; /* rows are of whole jobs, so `node` is NULL */
	bool
	    many; /* rows of each step of training threads, so that joins must not be nested loops */
	/*
	 * parameters of the table function, all VARCHAR: at most HR_ROW_PARAMETERS, then NULL.
	 * NULL: none
	 */
	const char *const *parameters;
	/* Returns what is wrong with the texts of the parameters, or NULL. */
	const char *(*check)(const char *const *parameters);
	/* `want`: bit i for column i. Notes and leaves out damaged frames. 0 or -ENOMEM. */
	int (*gather)(struct hr_rows *rows, uint64_t want);
	void (*done)(struct hr_rows *rows); /* may be NULL */
	/* Returns the process of a row; 0: none. NULL: the table has no columns of processes. */
	uint64_t (*proc)(const struct hr_rows *rows, size_t row);
	/* Returns the stream of a row. Set only if one unit contains all streams, else NULL. */
	const struct hr_qstream *(*stream)(const struct hr_rows *rows, size_t row);
	void (*cell)(const struct hr_rows *rows, size_t row, unsigned column, struct hr_cell *ret);
};

#define HR_WANTS(want, column) (((want) >> (column)&1) != 0)

extern const struct hr_row_kind hr__rollups_kind, hr__file_records_kind, hr__files_kind,
    hr__processes_kind, hr__levels_kind, hr__losses_kind, hr__jobs_kind, hr__labels_kind,
    hr__nodes_kind, hr__regions_kind, hr__kernel_records_kind, hr__parts_kind, hr__replays_kind,
    hr__findings_kind, hr__waits_kind;

/* ---- for kinds ---- */
struct hr_frames {
	Headrace__Frame **list;
	size_t n;
	struct hr_arena arena; /* has the frames */
};
int hr__frames_read(struct hr_query *q, const struct hr_qstream *st, int body_case,
		    struct hr_frames *ret);
void hr__frames_free(struct hr_frames *f);

/* Reads the frames with regions, for hr_regions_get(). Notes and leaves out damaged frames. */
int hr__regions_read(struct hr_query *q, const struct hr_qstream *st, struct hr_frames *ret);

static inline void hr__cell_text(struct hr_cell *c, duckdb_string_t s)
{
	c->s = s;
	c->null = s.value.inlined.length == 0;
}

static inline void hr__cell_constant(struct hr_cell *c, const char *text)
{
	hr__cell_text(c, hr__string(text, text != NULL ? strlen(text) : 0));
}

/* The mount with this number; NULL: unknown. */
static inline const struct hr_qmount *hr__mount(const struct hr_qstream *st, uint32_t mount)
{
	return mount < st->s->n_mounts && st->mount_known[mount] ? &st->mounts[mount] : NULL;
}

static inline void hr__cell_mount(const struct hr_qstream *st, uint32_t mount, bool fs_type,
				  struct hr_cell *c)
{
	const struct hr_qmount *m = hr__mount(st, mount);

	c->null = m == NULL;
	if (m != NULL)
		c->s = fs_type ? m->fs_type : m->path;
}

/* Makes a cell NULL if `value` is 0, which in messages means unknown. */
static inline void hr__cell_nonzero(struct hr_cell *c, uint64_t value)
{
	c->u = value;
	c->null = value == 0;
}

static inline void hr__cell_wall(struct hr_cell *c, const struct hr_qstream *st, uint64_t boot_ns)
{
	c->i = hr__wall_ns(st, boot_ns);
	c->null = boot_ns == 0;
}

/* Adds a sparse histogram (pairs of bin and count); ignores bins out of range. */
void hr__hist_add(uint64_t *hist, const uint64_t *pairs, size_t n);

#endif

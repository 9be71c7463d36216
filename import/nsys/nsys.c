/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Databases that `nsys export --type sqlite` and `headrace export --to nsys` write. Which tables
 * and columns a file has depends on what nsys traced, and on its version.
 */
#include "import/nsys/nsys.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define MAGIC	     "SQLite format 3"
#define VALUE_MOST   (16 << 20)
#define STOP_STEPS   100000 /* the signal is checked after so many steps of SQLite */
#define SQL_BYTES    2048u
#define NO_STATEMENT NULL
#define BEFORE_NS    INT64_C(3600000000000) /* a row that begins earlier is not valid */

/* ---- statements ------------------------------------------------------------------------------ */

static int stop_check(void *context)
{
	return hr_import_stopped(context);
}

sqlite3_stmt *hr__nsys_statement(struct nsys *n, const char *sql)
{
	sqlite3_stmt *st;

	return sqlite3_prepare_v2(n->db, sql, -1, &st, NULL) == SQLITE_OK ? st : NO_STATEMENT;
}

static bool column_exists(struct nsys *n, const char *table, const char *column)
{
	sqlite3_stmt *st = hr__nsys_statement(
	    n, "SELECT 1 FROM pragma_table_info(?1) WHERE name = ?2 COLLATE NOCASE");
	bool exists;

	if (!st)
		return false;
	sqlite3_bind_text(st, 1, table, -1, SQLITE_STATIC);
	sqlite3_bind_text(st, 2, column, -1, SQLITE_STATIC);
	exists = sqlite3_step(st) == SQLITE_ROW;
	sqlite3_finalize(st);
	return exists;
}

/* Makes "SELECT a, NULL, c FROM table", with NULL for columns that the file lacks. */
static sqlite3_stmt *table_select(struct nsys *n, const struct nsys_table *t)
{
	char sql[SQL_BYTES] = "SELECT ";
	size_t at = strlen(sql);

	if (!column_exists(n, t->name, t->columns[0]))
		return NO_STATEMENT;
	for (unsigned i = 0; i < NSYS_COLUMNS && t->columns[i]; i++)
		at += (size_t)snprintf(sql + at, sizeof(sql) - at, "%s%s", i ? ", " : "",
				       column_exists(n, t->name, t->columns[i]) ? t->columns[i]
										: "NULL");
	snprintf(sql + at, sizeof(sql) - at, " FROM %s%s%s", t->name, t->where ? " WHERE " : "",
		 t->where ? t->where : "");
	return hr__nsys_statement(n, sql);
}

/* Reads a table. Returns 0 or a fatal error. *ret_rows: number of its rows, if not NULL. */
static int table_read(struct nsys *n, const struct nsys_table *t, uint64_t *ret_rows)
{
	sqlite3_stmt *st = table_select(n, t);
	uint64_t rows = 0;
	int r = 0, step = SQLITE_DONE;

	while (st && !r && (step = sqlite3_step(st)) == SQLITE_ROW) {
		rows++;
		r = t->row(n, st);
		n->n_bad += r == -EBADMSG;
		r = r == -EBADMSG ? 0 : r;
	}
	if (!r && hr_import_stopped(n->f))
		r = -ECANCELED;
	if (!r && step != SQLITE_DONE && step != SQLITE_ROW)
		hr_import_missing(n->f, HR_LOSS_IMPORT_CUT, 1,
				  "%s is damaged (%s): imported up to row %" PRIu64, t->name,
				  sqlite3_errmsg(n->db), rows);
	sqlite3_finalize(st);
	n->n_rows += rows;
	if (ret_rows)
		*ret_rows = rows;
	return r;
}

/* Returns the first value of the first row. */
static int64_t number_read(struct nsys *n, const char *sql, int64_t otherwise)
{
	sqlite3_stmt *st = hr__nsys_statement(n, sql);
	int64_t value = otherwise;

	if (st && sqlite3_step(st) == SQLITE_ROW && sqlite3_column_type(st, 0) == SQLITE_INTEGER)
		value = sqlite3_column_int64(st, 0);
	sqlite3_finalize(st);
	return value;
}

/* ---- the tables ------------------------------------------------------------------------------ */

static const struct nsys_table *const tables[] = {
    &hr__nsys_processes, &hr__nsys_own_processes, &hr__nsys_names,   &hr__nsys_ranges,
    &hr__nsys_kernels,	 &hr__nsys_memcpys,	  &hr__nsys_memsets, &hr__nsys_graphs,
    &hr__nsys_runtime,	 &hr__nsys_syncs};

/* ---- the streams ----------------------------------------------------------------------------- */

/* Returns how long before time 0 the first row begins. Without an epoch, times then begin there. */
static int64_t before_find(struct nsys *n)
{
	int64_t before = 0;

	for (size_t i = 0; i < sizeof(tables) / sizeof(tables[0]); i++) {
		char sql[SQL_BYTES];
		int64_t start;

		snprintf(sql, sizeof(sql), "SELECT min(start) FROM %s WHERE start >= %" PRId64,
			 tables[i]->name, -BEFORE_NS);
		start = number_read(n, sql, 0);
		before = -start > before ? -start : before;
	}
	return before;
}

static int streams_open(struct nsys *n)
{
	n->epoch_ns = number_read(n, "SELECT utcEpochNs FROM TARGET_INFO_SESSION_START_TIME", -1);
	n->before_ns = n->epoch_ns > 0 ? BEFORE_NS : before_find(n);
	if (n->epoch_ns <= 0)
		hr_import_problem(n->f, "its times begin at 0: the time of day is unknown");
	return hr__nsys_nodes_open(n);
}

/* ---- the file -------------------------------------------------------------------------------- */

static int tables_read(struct nsys *n)
{
	uint64_t own = 0;
	int r = 0;

	n->last_ns = number_read(n, "SELECT max(coalesce(end, start)) FROM NVTX_EVENTS", 0);
	for (size_t i = 0; i < sizeof(tables) / sizeof(tables[0]) && !r; i++)
		r = table_read(n, tables[i], NULL);
	if (!r)
		r = table_read(n, &hr__nsys_own_calls, &own);
	if (!r && own == 0)
		r = table_read(n, &hr__nsys_calls, NULL);
	return r;
}

/* Reports what nsys did not trace. */
static void absent_report(struct nsys *n)
{
	if (!column_exists(n, "NVTX_EVENTS", "start"))
		hr_import_problem(n->f, "no table NVTX_EVENTS: no ranges and no steps (nsys "
					"profile --trace=nvtx records them)");
	if (!column_exists(n, "OSRT_API", "start") && !column_exists(n, "HEADRACE_IO", "start"))
		hr_import_problem(n->f, "no table OSRT_API: no calls of the operating system "
					"(nsys profile --trace=osrt records them)");
}

static bool table_is_read(const char *name)
{
	for (size_t i = 0; i < sizeof(tables) / sizeof(tables[0]); i++)
		if (strcmp(name, tables[i]->name) == 0)
			return true;
	return strcmp(name, hr__nsys_calls.name) == 0 || strncmp(name, "HEADRACE_", 9) == 0;
}

static void others_lose(struct nsys *n, const char *table, int64_t rows)
{
	hr_import_missing(n->f, HR_LOSS_IMPORT_KINDS, rows > 0 ? (uint64_t)rows : 0,
			  "%" PRId64 " rows of %s were not imported", rows, table);
}

/* Reports rows with a time that no table above reads, for example those of MPI. */
static void others_report(struct nsys *n)
{
	sqlite3_stmt *st = hr__nsys_statement(
	    n, "SELECT m.name FROM sqlite_master m, pragma_table_info(m.name) c "
	       "WHERE m.type = 'table' AND c.name = 'start' COLLATE NOCASE ORDER BY 1");

	while (st && sqlite3_step(st) == SQLITE_ROW) {
		const char *name = (const char *)sqlite3_column_text(st, 0);
		char sql[SQL_BYTES];

		if (!name || table_is_read(name))
			continue;
		sqlite3_snprintf(sizeof(sql), sql, "SELECT count(*) FROM \"%w\"", name);
		others_lose(n, name, number_read(n, sql, 0));
	}
	sqlite3_finalize(st);
	others_lose(n, "NVTX_EVENTS with other types",
		    number_read(n,
				"SELECT count(*) FROM NVTX_EVENTS WHERE eventType NOT IN (33, "
				"34, 39, 59, 60, 70, 71, 75, 76)",
				0));
}

/* Reports what the recording of headrace's own files lacks. */
static void notes_report(struct nsys *n)
{
	sqlite3_stmt *st = hr__nsys_statement(
	    n, "SELECT value FROM META_DATA_EXPORT WHERE name = 'HEADRACE_LEFT_OUT' OR name GLOB "
	       "'HEADRACE_NOTE_*'");

	while (st && sqlite3_step(st) == SQLITE_ROW) {
		const char *note = (const char *)sqlite3_column_text(st, 0);

		hr_import_missing(n->f, HR_LOSS_IMPORT_NOTED, 1, "its recording states: %s",
				  note ? note : "");
	}
	sqlite3_finalize(st);
}

static void problems_report(struct nsys *n)
{
	absent_report(n);
	others_report(n);
	notes_report(n);
	hr_import_bad(n->f, &(struct hr_import_bad){n->n_bad, n->n_rows, "rows", 0});
	if (n->n_other)
		hr_import_problem(n->f, "%" PRIu64 " calls that are no file I/O were not imported",
				  n->n_other);
	hr_import_missing(n->f, HR_LOSS_IMPORT_EMPTY, n->n_rows == 0,
			  "no ranges, kernels or calls");
}

static int database_open(struct nsys *n)
{
	int r =
	    sqlite3_open_v2(n->f->path, &n->db, SQLITE_OPEN_READONLY | SQLITE_OPEN_NOMUTEX, NULL);

	if (r != SQLITE_OK)
		return -EIO;
	sqlite3_limit(n->db, SQLITE_LIMIT_LENGTH, VALUE_MOST);
	sqlite3_db_config(n->db, SQLITE_DBCONFIG_DEFENSIVE, 1, NULL);
	sqlite3_db_config(n->db, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, NULL);
	sqlite3_progress_handler(n->db, STOP_STEPS, stop_check, n->f);
	return number_read(n, "SELECT count(*) FROM sqlite_master", -1) < 0 ? -EIO : 0;
}

static void nsys_done(struct nsys *n)
{
	sqlite3_finalize(n->string);
	sqlite3_finalize(n->own);
	sqlite3_close(n->db);
	hr__nsys_nodes_done(n);
	hr_map64_done(&n->named);
	hr_map64_done(&n->op_of);
	for (uint32_t i = 0; i < n->n_names; i++)
		free(n->names[i]);
	free(n->names);
	for (unsigned i = 0; i < NSYS_BUFFERS; i++)
		free(n->texts[i]);
}

/* SQLite reads the file, whose head the input has counted. */
static void bytes_count(struct hr_import_file *f)
{
	struct stat st;

	if (stat(f->path, &st) == 0 && (uint64_t)st.st_size > hr_input_bytes(f->input))
		hr_input_count(f->input, (uint64_t)st.st_size - hr_input_bytes(f->input));
}

static int nsys_read(struct hr_import_file *f)
{
	struct nsys n = {.f = f};
	int r;

	if (database_open(&n)) {
		hr_import_missing(f, HR_LOSS_IMPORT_FILE, 1, "damaged: SQLite cannot read it (%s)",
				  sqlite3_errmsg(n.db));
		nsys_done(&n);
		return 0;
	}
	if (!column_exists(&n, "NVTX_EVENTS", "start") &&
	    !column_exists(&n, "StringIds", "value") &&
	    !column_exists(&n, "META_DATA_EXPORT", "value")) {
		hr_import_missing(f, HR_LOSS_IMPORT_FILE, 1,
				  "an SQLite database that Nsight Systems did not export");
		nsys_done(&n);
		return 0;
	}
	n.string = hr__nsys_statement(&n, "SELECT value FROM StringIds WHERE id = ?1");
	n.own = hr__nsys_statement(&n, "SELECT kind, step, epoch, count, open, rank, worker, "
				       "category, depth FROM HEADRACE_REGIONS WHERE rangeId = ?1");
	n.own_file = column_exists(&n, "HEADRACE_OPERATIONS", "correlationId");
	r = streams_open(&n);
	if (!r)
		r = tables_read(&n);
	if (!r)
		problems_report(&n);
	nsys_done(&n);
	bytes_count(f);
	return r;
}

static bool nsys_probe(const uint8_t *head, size_t bytes)
{
	return bytes > sizeof(MAGIC) && memcmp(head, MAGIC, sizeof(MAGIC)) == 0;
}

const struct hr_reader hr_reader_nsys = {
    .name = "nsys",
    .what = "Nsight Systems database",
    .probe = nsys_probe,
    .read = nsys_read,
};

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A database of Nsight Systems: its import into a store. The input is a database as it is, or lines
 * of rows: a letter (the table), and the values with a comma between them. An empty value is NULL.
 */
#include <sqlite3.h>
#include <stdbool.h>

#include "import/nsys/nsys.h"
#include "tests/fuzz/import_files.h"

#define MAGIC "SQLite format 3"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);

static const struct nsys_table strings = {.name = "StringIds", .columns = {"id", "value"}};
static const struct nsys_table system_env = {.name = "TARGET_INFO_SYSTEM_ENV",
					     .columns = {"name", "value"}};
static const struct nsys_table session = {.name = "TARGET_INFO_SESSION_START_TIME",
					  .columns = {"utcEpochNs"}};
static const struct nsys_table own_regions = {
    .name = "HEADRACE_REGIONS",
    .columns = {"rangeId", "kind", "step", "epoch", "count", "open", "rank", "worker"}};

/* By letter, from 'a'. */
static const struct nsys_table *const tables[] = {
    &strings,	      &system_env,	 &session,	     &own_regions,	&hr__nsys_processes,
    &hr__nsys_ranges, &hr__nsys_kernels, &hr__nsys_memcpys,  &hr__nsys_memsets, &hr__nsys_runtime,
    &hr__nsys_syncs,  &hr__nsys_calls,	 &hr__nsys_own_calls};
#define N_TABLES (sizeof(tables) / sizeof(tables[0]))

/* Makes a table when its first row comes, so that files lack tables. Returns the INSERT. */
static sqlite3_stmt *table_make(sqlite3 *db, const struct nsys_table *t)
{
	char create[1024], insert[512];
	size_t c = (size_t)snprintf(create, sizeof(create), "CREATE TABLE %s (", t->name);
	size_t n = (size_t)snprintf(insert, sizeof(insert), "INSERT INTO %s VALUES (", t->name);
	sqlite3_stmt *st = NULL;

	for (unsigned i = 0; i < NSYS_COLUMNS && t->columns[i]; i++) {
		c += (size_t)snprintf(create + c, sizeof(create) - c, "%s%s", i ? "," : "",
				      t->columns[i]);
		n += (size_t)snprintf(insert + n, sizeof(insert) - n, "%s?", i ? "," : "");
	}
	snprintf(create + c, sizeof(create) - c, ")");
	snprintf(insert + n, sizeof(insert) - n, ")");
	if (sqlite3_exec(db, create, NULL, NULL, NULL) != SQLITE_OK ||
	    sqlite3_prepare_v2(db, insert, -1, &st, NULL) != SQLITE_OK)
		abort();
	return st;
}

static void value_bind(sqlite3_stmt *st, int column, const char *text, size_t n)
{
	char *end, copy[32];

	if (n == 0)
		return; /* NULL */
	snprintf(copy, sizeof(copy), "%.*s", n < 31 ? (int)n : 31, text);
	if (strtoll(copy, &end, 10), *end == '\0' && n < 31)
		sqlite3_bind_int64(st, column, strtoll(copy, NULL, 10));
	else if (strtod(copy, &end), *end == '\0' && n < 31)
		sqlite3_bind_double(st, column, strtod(copy, NULL));
	else
		sqlite3_bind_text(st, column, text, (int)n, SQLITE_STATIC);
}

static void rows_write(sqlite3 *db, const char *at, const char *end)
{
	sqlite3_stmt *insert[N_TABLES] = {NULL};

	while (at < end) {
		const char *line = memchr(at, '\n', (size_t)(end - at));
		size_t t = (size_t)*at++ - 'a';

		line = line ? line : end;
		if (t >= N_TABLES || at > line) {
			at = line + 1;
			continue;
		}
		if (!insert[t])
			insert[t] = table_make(db, tables[t]);
		for (int column = 1; at <= line; column++) {
			const char *comma = memchr(at, ',', (size_t)(line - at));

			comma = comma ? comma : line;
			value_bind(insert[t], column, at, (size_t)(comma - at));
			at = comma + 1;
		}
		sqlite3_step(insert[t]);
		sqlite3_reset(insert[t]);
		sqlite3_clear_bindings(insert[t]);
	}
	for (size_t t = 0; t < N_TABLES; t++)
		sqlite3_finalize(insert[t]);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
	char folder[] = "/tmp/headrace-fuzz-XXXXXX", path[64];
	sqlite3 *db;

	if (bytes > sizeof(MAGIC) && memcmp(data, MAGIC, sizeof(MAGIC)) == 0) {
		input_import(data, bytes, -1);
		return 0;
	}
	if (!mkdtemp(folder))
		abort();
	snprintf(path, sizeof(path), "%s/t.7", folder);
	if (sqlite3_open(path, &db) != SQLITE_OK ||
	    sqlite3_exec(db, "PRAGMA journal_mode=OFF; PRAGMA synchronous=OFF; BEGIN", NULL, NULL,
			 NULL) != SQLITE_OK)
		abort();
	rows_write(db, (const char *)data, (const char *)data + bytes);
	if (sqlite3_exec(db, "COMMIT", NULL, NULL, NULL) != SQLITE_OK)
		abort();
	sqlite3_close(db);
	files_import(folder, 1);
	folder_remove(folder);
	return 0;
}

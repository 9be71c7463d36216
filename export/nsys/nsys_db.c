/* SPDX-License-Identifier: Apache-2.0 */
#include "export/nsys/nsys_db.h"

#include <errno.h>
#include <sqlite3.h>
#include <stdlib.h>
#include <string.h>

#include "common/fnv.h"
#include "common/map64.h"
#include "common/text.h"
#include "export/nsys/nsys_tables.h"

#define ESCAPED_BYTES 16384u /* of the buffer for most texts */

/* The file has no reader before it is complete, so it needs neither a journal nor locks. */
#define SETTINGS                                                                                   \
	"PRAGMA page_size=32768; PRAGMA journal_mode=OFF; PRAGMA synchronous=OFF;"                 \
	"PRAGMA locking_mode=EXCLUSIVE; PRAGMA temp_store=MEMORY; BEGIN;"

struct hr_nsys_db {
	sqlite3 *db;
	sqlite3_stmt *inserts[HR_NSYS_TABLES];
	struct hr_map64 strings; /* from a hash of the text to its id */
	char escaped[ESCAPED_BYTES];
};

static const struct {
	const char *name, *columns;
	unsigned numbers, texts;
} tables[] = {
#define HR__NSYS_INSERT(name, columns, numbers, texts) {#name, columns, numbers, texts},
    HR_NSYS_INSERTS(HR__NSYS_INSERT)
#undef HR__NSYS_INSERT
};

/* ---- open and close ---- */

static int sqlite_error(int code)
{
	switch (code & 0xff) {
	case SQLITE_OK:
	case SQLITE_DONE:
		return 0;
	case SQLITE_NOMEM:
		return -ENOMEM;
	case SQLITE_FULL:
		return -ENOSPC;
	case SQLITE_TOOBIG:
		return -EFBIG;
	case SQLITE_CANTOPEN:
	case SQLITE_PERM:
	case SQLITE_READONLY:
		return -EACCES;
	default:
		return -EIO;
	}
}

static int insert_prepare(struct hr_nsys_db *db, enum hr_nsys_insert table)
{
	char sql[300];
	int at = snprintf(sql, sizeof(sql), "INSERT INTO %s (%s) VALUES (?", tables[table].name,
			  tables[table].columns);

	for (unsigned i = 1; i < tables[table].numbers + tables[table].texts; i++)
		at += snprintf(sql + at, sizeof(sql) - (size_t)at, ",?");
	snprintf(sql + at, sizeof(sql) - (size_t)at, ")");
	return sqlite_error(sqlite3_prepare_v3(db->db, sql, -1, SQLITE_PREPARE_PERSISTENT,
					       &db->inserts[table], NULL));
}

int hr_nsys_db_open(const char *path, struct hr_nsys_db **ret)
{
	struct hr_nsys_db *db = calloc(1, sizeof(*db));
	int r;

	if (db == NULL)
		return -ENOMEM;
	r = sqlite_error(
	    sqlite3_open_v2(path, &db->db, SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX, NULL));
	if (r == 0)
		r = sqlite_error(sqlite3_exec(db->db, SETTINGS HR_NSYS_CREATE, NULL, NULL, NULL));
	for (unsigned i = 0; i < HR_NSYS_TABLES && r == 0; i++)
		r = insert_prepare(db, i);
	if (r < 0)
		hr_nsys_db_close(db, false);
	else
		*ret = db;
	return r;
}

int hr_nsys_db_close(struct hr_nsys_db *db, bool commit)
{
	int r = 0, closed;

	if (db == NULL)
		return 0;
	for (unsigned i = 0; i < HR_NSYS_TABLES; i++)
		sqlite3_finalize(db->inserts[i]);
	if (commit)
		r = sqlite_error(sqlite3_exec(db->db, "COMMIT", NULL, NULL, NULL));
	closed = sqlite_error(sqlite3_close(db->db));
	hr_map64_done(&db->strings);
	free(db);
	return r < 0 ? r : closed;
}

/* ---- rows ---- */

/* Whether the only bytes that are escaped are backslashes. */
static bool only_backslashes(const struct hr_nsys_text *text, size_t escaped_bytes)
{
	const char *bytes = text->text;
	size_t n = text->bytes;

	for (size_t i = 0; i < text->bytes; i++)
		n += bytes[i] == '\\';
	return n == escaped_bytes;
}

static int text_bind(struct hr_nsys_db *db, sqlite3_stmt *s, int column,
		     const struct hr_nsys_text *text)
{
	char *escaped = db->escaped;
	size_t room = 4 * text->bytes + 1, n;
	int code;

	if (text->text == NULL)
		return sqlite_error(sqlite3_bind_null(s, column));
	if (room > sizeof(db->escaped))
		escaped = malloc(room);
	if (escaped == NULL)
		return -ENOMEM;
	n = hr_text_escape(escaped, room, text->text, text->bytes);
	if (text->json && only_backslashes(text, n))
		code = sqlite3_bind_text64(s, column, text->text, text->bytes, SQLITE_TRANSIENT,
					   SQLITE_UTF8);
	else
		code = sqlite3_bind_text64(s, column, escaped, n, SQLITE_TRANSIENT, SQLITE_UTF8);
	if (escaped != db->escaped)
		free(escaped);
	return sqlite_error(code);
}

static int row_write(sqlite3_stmt *s)
{
	sqlite3_step(s);
	return sqlite_error(sqlite3_reset(s)); /* the error of the step */
}

int hr_nsys_insert(struct hr_nsys_db *db, enum hr_nsys_insert table, const int64_t *numbers,
		   const struct hr_nsys_text *texts)
{
	sqlite3_stmt *s = db->inserts[table];
	int n = (int)tables[table].numbers, r = 0, code = SQLITE_OK;

	for (int i = 0; i < n && code == SQLITE_OK; i++)
		code = numbers[i] == HR_NSYS_NULL ? sqlite3_bind_null(s, i + 1)
						  : sqlite3_bind_int64(s, i + 1, numbers[i]);
	r = sqlite_error(code);
	for (int i = 0; i < (int)tables[table].texts && r == 0; i++)
		r = text_bind(db, s, n + i + 1, &texts[i]);
	return r == 0 ? row_write(s) : r;
}

int hr_nsys_string(struct hr_nsys_db *db, const void *text, size_t bytes, int64_t *ret_id)
{
	uint64_t hash = hr_fnv(HR_FNV_BASIS, text, bytes);
	uint32_t id = hr_map64_get(&db->strings, hash);
	struct hr_nsys_text value = {.text = text, .bytes = bytes};
	sqlite3_stmt *s = db->inserts[HR_NSYS_StringIds];
	int r = 0;

	if (id == HR_MAP64_NONE) {
		id = db->strings.used + 1;
		r = hr_map64_set(&db->strings, hash, id);
		if (r == 0)
			r = sqlite_error(sqlite3_bind_int64(s, 1, id));
		if (r == 0)
			r = text_bind(db, s, 2, &value);
		if (r == 0)
			r = row_write(s);
	}
	*ret_id = id;
	return r;
}

struct hr_nsys_text hr_nsys_text(const char *text)
{
	return (struct hr_nsys_text){.text = text, .bytes = text != NULL ? strlen(text) : 0};
}

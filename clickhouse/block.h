/* SPDX-License-Identifier: Apache-2.0 */
/*
 * block.h - rows of one table as a block of ClickHouse's format Native
 *
 * Purpose   Collects rows column by column, which is how Native sends them: a fixed-width column
 *           is its values, a text is its length and bytes, an array column is its ends and values.
 * Owner     The caller fills a block row by row: each row needs a value in each column.
 * Threads   One at a time.
 * Errors    Without memory, `failed` is set, and the content is worthless until hr_ch_block_clear.
 */
#ifndef HEADRACE_CLICKHOUSE_BLOCK_H
#define HEADRACE_CLICKHOUSE_BLOCK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/uio.h>

enum hr_ch_type {
	HR_CH_U8,
	HR_CH_U16,
	HR_CH_U32,
	HR_CH_U64,
	HR_CH_I32,
	HR_CH_I64,
	HR_CH_DATE,
	HR_CH_TIME,
	HR_CH_TEXT,
	HR_CH_LIST
};

enum hr_ch_table {
#define HR_TABLE(name, row, key) HR_CH_TABLE_##name,
#include "clickhouse/tables.def"
	HR_CH_TABLES
};

/* Numbers of columns: HR_CH_day... for all tables, then HR_CH_events_proc... */
enum {
#define HR_COMMON(name, type) HR_CH_##name,
#include "clickhouse/tables.def"
	HR_CH_COMMON
};
#define HR_TABLE(name, row, key)	   enum { HR_CH_##name##_first = HR_CH_COMMON - 1,
#define HR_COLUMN(table, name, type, from) HR_CH_##table##_##name,
#define HR_END(table)                                                                              \
	HR_CH_##table##_columns                                                                    \
	}                                                                                          \
	;
/* clang-format off */
#include "clickhouse/tables.def"
/* clang-format on */

struct hr_ch_column_info {
	const char *name;
	enum hr_ch_type type;
};

struct hr_ch_table_info {
	const char *name;		     /* without "_rows" */
	const char *key;		     /* columns of the sorting key */
	const struct hr_ch_column_info *own; /* the columns after the common ones */
	unsigned n_columns;		     /* with the common ones */
};

extern const struct hr_ch_table_info hr_ch_tables[HR_CH_TABLES];

const struct hr_ch_column_info *hr_ch_column(const struct hr_ch_table_info *t, unsigned column);

/* "UInt64", "String"... */
const char *hr_ch_type_name(enum hr_ch_type type);

#define HR_CH_COLUMNS_MAX 40u

struct hr_ch_bytes {
	uint8_t *data;
	size_t bytes, room;
};

struct hr_ch_block {
	const struct hr_ch_table_info *table;
	size_t rows;
	bool failed;
	struct hr_ch_bytes columns[HR_CH_COLUMNS_MAX];
	struct hr_ch_bytes values[HR_CH_COLUMNS_MAX]; /* of LIST columns */
	struct hr_ch_bytes heads;		      /* what hr_ch_block_parts has made */
};

void hr_ch_block_init(struct hr_ch_block *b, enum hr_ch_table table);
void hr_ch_block_done(struct hr_ch_block *b);
void hr_ch_block_clear(struct hr_ch_block *b); /* keeps the memory */
size_t hr_ch_block_bytes(const struct hr_ch_block *b);

/* Makes room for n more bytes, which the caller fills. NULL: no memory. */
void *hr_ch_more(struct hr_ch_bytes *to, size_t n);

/* Returns memory for n values of a column of fixed width. NULL: no memory, and `failed` is set. */
void *hr_ch_block_values(struct hr_ch_block *b, unsigned column, size_t n, size_t width);

/* Adds n rows with the same value. */
void hr_ch_block_repeat_number(struct hr_ch_block *b, unsigned column, uint64_t value, size_t n);
void hr_ch_block_repeat_text(struct hr_ch_block *b, unsigned column, const char *text, size_t n);

/* Adds one value to a column of numbers, and n bytes or pairs to other columns. */
static inline void hr_ch_block_number(struct hr_ch_block *b, unsigned column, uint64_t value)
{
	hr_ch_block_repeat_number(b, column, value, 1);
}
void hr_ch_block_text(struct hr_ch_block *b, unsigned column, const void *text, size_t n);
void hr_ch_block_list(struct hr_ch_block *b, unsigned column, const uint64_t *values, size_t n);

/* Adds text of users or programs, escaped; NULL is empty. */
void hr_ch_block_escaped(struct hr_ch_block *b, unsigned column, const void *text, size_t n);
static inline void hr_ch_block_string(struct hr_ch_block *b, unsigned column, const char *text)
{
	hr_ch_block_escaped(b, column, text, text ? strlen(text) : 0);
}

/*
 * Returns the parts of the block, in the order in which Native sends them. They are valid until the
 * block changes. *ret: at most HR_CH_BLOCK_PARTS. Returns 0 or -ENOMEM.
 */
#define HR_CH_BLOCK_PARTS (3u * HR_CH_COLUMNS_MAX)
int hr_ch_block_parts(struct hr_ch_block *b, struct iovec *ret, size_t *ret_n);

/* Writes "INSERT INTO `database`.<table>_rows (...) FORMAT Native". */
void hr_ch_block_insert(const struct hr_ch_block *b, const char *database, FILE *to);

#endif

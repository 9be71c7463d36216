/* SPDX-License-Identifier: Apache-2.0 */
#include "clickhouse/block.h"

#include <errno.h>
#include <stdlib.h>

#include "common/array.h"
#include "common/text.h"

/* ---- tables ---- */

static const struct hr_ch_column_info common[] = {
#define HR_COMMON(name, type) {#name, HR_CH_##type},
#include "clickhouse/tables.def"
};

/* clang-format off */
#define HR_TABLE(name, row, key)	     static const struct hr_ch_column_info name##_columns[] = {
#define HR_COLUMN(table, name, type, from) {#name, HR_CH_##type},
#define HR_END(table)		     };
#include "clickhouse/tables.def"
/* clang-format on */

const struct hr_ch_table_info hr_ch_tables[HR_CH_TABLES] = {
#define HR_TABLE(name, row, key) {#name, key, name##_columns, HR_CH_##name##_columns},
#include "clickhouse/tables.def"
};

#define HR_END(table)                                                                              \
	_Static_assert((int)HR_CH_##table##_columns <= (int)HR_CH_COLUMNS_MAX, #table);
#include "clickhouse/tables.def"

static const struct {
	const char *name;
	uint8_t width; /* 0: no fixed width */
} types[] = {
    [HR_CH_U8] = {"UInt8", 1},		 [HR_CH_U16] = {"UInt16", 2}, [HR_CH_U32] = {"UInt32", 4},
    [HR_CH_U64] = {"UInt64", 8},	 [HR_CH_I32] = {"Int32", 4},  [HR_CH_I64] = {"Int64", 8},
    [HR_CH_DATE] = {"Date", 2},		 [HR_CH_TIME] = {"Int64", 8}, [HR_CH_TEXT] = {"String", 0},
    [HR_CH_LIST] = {"Array(UInt64)", 0},
};

const struct hr_ch_column_info *hr_ch_column(const struct hr_ch_table_info *t, unsigned column)
{
	return column < HR_CH_COMMON ? &common[column] : &t->own[column - HR_CH_COMMON];
}

const char *hr_ch_type_name(enum hr_ch_type type)
{
	return types[type].name;
}

/* ---- filling ---- */

void *hr_ch_more(struct hr_ch_bytes *to, size_t n)
{
	void *at;

	/* one byte more, so that no array is NULL */
	if (!hr_array_fit(to->data, to->bytes + n + 1, to->room))
		return NULL;
	at = to->data + to->bytes;
	to->bytes += n;
	return at;
}

void *hr_ch_block_values(struct hr_ch_block *b, unsigned column, size_t n, size_t width)
{
	void *at = hr_ch_more(&b->columns[column], n * width);

	b->failed |= !at;
	return at;
}

/* Writes a variable-length number, as Native has it. Returns its length, at most 10. */
static size_t put_length(uint8_t *to, uint64_t n)
{
	size_t bytes = 0;

	for (; n >= 0x80; n >>= 7)
		to[bytes++] = (uint8_t)(n | 0x80);
	to[bytes++] = (uint8_t)n;
	return bytes;
}

/* Writes a text: its length and its bytes. Returns false without memory. */
static bool put_text(struct hr_ch_bytes *to, const void *text, size_t n)
{
	uint8_t length[10];
	size_t head = put_length(length, n);
	uint8_t *at = hr_ch_more(to, head + n);

	if (!at)
		return false;
	memcpy(at, length, head);
	if (n > 0)
		memcpy(at + head, text, n);
	return true;
}

void hr_ch_block_text(struct hr_ch_block *b, unsigned column, const void *text, size_t n)
{
	b->failed |= !put_text(&b->columns[column], text, n);
}

void hr_ch_block_escaped(struct hr_ch_block *b, unsigned column, const void *text, size_t n)
{
	char small[512], *large = NULL;
	size_t length = hr_text_escape(small, sizeof(small), text, n);

	if (length >= sizeof(small)) {
		large = hr_text_escaped(text, n);
		b->failed |= !large;
	}
	if (length < sizeof(small) || large)
		hr_ch_block_text(b, column, large ? large : small, length);
	free(large);
}

void hr_ch_block_list(struct hr_ch_block *b, unsigned column, const uint64_t *values, size_t n)
{
	struct hr_ch_bytes *list = &b->values[column];
	void *at = hr_ch_more(list, n * sizeof(*values));
	uint64_t *end = hr_ch_block_values(b, column, 1, sizeof(*end)), so_far;

	b->failed |= !at;
	if (!at || !end)
		return;
	if (n > 0)
		memcpy(at, values, n * sizeof(*values));
	so_far = list->bytes / sizeof(*values);
	memcpy(end, &so_far, sizeof(so_far));
}

/* Fills `bytes` bytes with copies of the first `unit` bytes. */
static void fill(uint8_t *at, size_t unit, size_t bytes)
{
	for (size_t done = unit; done < bytes; done *= 2)
		memcpy(at + done, at, done < bytes - done ? done : bytes - done);
}

void hr_ch_block_repeat_number(struct hr_ch_block *b, unsigned column, uint64_t value, size_t n)
{
	size_t width = types[hr_ch_column(b->table, column)->type].width;
	uint8_t *at = hr_ch_block_values(b, column, n, width);

	if (!at || n == 0)
		return;
	memcpy(at, &value, width); /* both sides are little-endian */
	fill(at, width, n * width);
}

void hr_ch_block_repeat_text(struct hr_ch_block *b, unsigned column, const char *text, size_t n)
{
	struct hr_ch_bytes *to = &b->columns[column];
	size_t first = to->bytes, bytes;

	if (n == 0)
		return;
	hr_ch_block_string(b, column, text);
	bytes = to->bytes - first;
	if (hr_ch_block_values(b, column, n - 1, bytes))
		fill(to->data + first, bytes, n * bytes);
}

/* ---- sending ---- */

/* Writes the counts of columns and rows, and the name and type of each column, to `heads`. */
static int make_heads(struct hr_ch_block *b, size_t *ends)
{
	uint8_t *at;

	b->heads.bytes = 0;
	at = hr_ch_more(&b->heads, 20);
	if (!at)
		return -ENOMEM;
	b->heads.bytes = put_length(at, b->table->n_columns);
	b->heads.bytes += put_length(at + b->heads.bytes, b->rows);
	for (unsigned i = 0; i < b->table->n_columns; i++) {
		const struct hr_ch_column_info *c = hr_ch_column(b->table, i);
		const char *type = types[c->type].name;

		if (!put_text(&b->heads, c->name, strlen(c->name)) ||
		    !put_text(&b->heads, type, strlen(type)))
			return -ENOMEM;
		ends[i] = b->heads.bytes;
	}
	return 0;
}

int hr_ch_block_parts(struct hr_ch_block *b, struct iovec *ret, size_t *ret_n)
{
	size_t ends[HR_CH_COLUMNS_MAX], at = 0, n = 0;

	if (make_heads(b, ends) < 0)
		return -ENOMEM;
	for (unsigned i = 0; i < b->table->n_columns; i++) {
		ret[n++] = (struct iovec){b->heads.data + at, ends[i] - at};
		ret[n++] = (struct iovec){b->columns[i].data, b->columns[i].bytes};
		ret[n++] = (struct iovec){b->values[i].data, b->values[i].bytes};
		at = ends[i];
	}
	*ret_n = n;
	return 0;
}

void hr_ch_block_insert(const struct hr_ch_block *b, const char *database, FILE *to)
{
	fprintf(to, "INSERT INTO `%s`.%s_rows (", database, b->table->name);
	for (unsigned i = 0; i < b->table->n_columns; i++)
		fprintf(to, "%s%s", i > 0 ? "," : "", hr_ch_column(b->table, i)->name);
	fputs(") FORMAT Native", to);
}

size_t hr_ch_block_bytes(const struct hr_ch_block *b)
{
	size_t bytes = 0;

	for (unsigned i = 0; i < b->table->n_columns; i++)
		bytes += b->columns[i].bytes + b->values[i].bytes;
	return bytes;
}

void hr_ch_block_init(struct hr_ch_block *b, enum hr_ch_table table)
{
	*b = (struct hr_ch_block){.table = &hr_ch_tables[table]};
}

void hr_ch_block_clear(struct hr_ch_block *b)
{
	b->rows = 0;
	b->failed = false;
	for (unsigned i = 0; i < b->table->n_columns; i++)
		b->columns[i].bytes = b->values[i].bytes = 0;
}

void hr_ch_block_done(struct hr_ch_block *b)
{
	for (unsigned i = 0; i < b->table->n_columns; i++) {
		free(b->columns[i].data);
		free(b->values[i].data);
	}
	free(b->heads.data);
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "query/duckdb/arrow.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "query/duckdb/flatbuffer.h"
#include "query/duckdb/value.h"
#include "common/text.h"

#define BATCH_ROWS  65536u
#define BATCH_BYTES (64u << 20) /* of the texts of a column: offsets have 31 bits */
#define ALIGN	    8u		/* of buffers and messages */

/* Numbers of Arrow's Schema.fbs and Message.fbs. */
enum { VERSION_V5 = 4, HEADER_SCHEMA = 1, HEADER_BATCH = 3 };
enum { MESSAGE_VERSION, MESSAGE_HEADER_TYPE, MESSAGE_HEADER, MESSAGE_BODY_BYTES };
enum { SCHEMA_FIELDS = 1, SCHEMA_METADATA = 2, KEY_VALUE_KEY = 0, KEY_VALUE_VALUE = 1 };
enum { FIELD_NAME, FIELD_NULLABLE, FIELD_TYPE_TYPE, FIELD_TYPE, FIELD_CHILDREN = 5 };
enum { BATCH_LENGTH, BATCH_NODES, BATCH_BUFFERS };
enum arrow_type {
	ARROW_INT = 2,
	ARROW_FLOAT = 3,
	ARROW_UTF8 = 5,
	ARROW_BOOL = 6,
	ARROW_DECIMAL = 7,
	ARROW_DATE = 8,
	ARROW_TIMESTAMP = 10,
	ARROW_LIST = 12,
	ARROW_FIXED_LIST = 16
};

/* How values of a type of DuckDB become values of Arrow. */
static const struct arrow_mapping {
	duckdb_type from;
	enum arrow_type to;
	unsigned bytes;	    /* of a value in DuckDB; 0: not fixed */
	unsigned parameter; /* of the type in Arrow, see arrow_type_table */
} mappings[] = {
    {DUCKDB_TYPE_BOOLEAN, ARROW_BOOL, 1, 0},
    {DUCKDB_TYPE_TINYINT, ARROW_INT, 1, 1},
    {DUCKDB_TYPE_SMALLINT, ARROW_INT, 2, 1},
    {DUCKDB_TYPE_INTEGER, ARROW_INT, 4, 1},
    {DUCKDB_TYPE_BIGINT, ARROW_INT, 8, 1},
    {DUCKDB_TYPE_UTINYINT, ARROW_INT, 1, 0},
    {DUCKDB_TYPE_USMALLINT, ARROW_INT, 2, 0},
    {DUCKDB_TYPE_UINTEGER, ARROW_INT, 4, 0},
    {DUCKDB_TYPE_UBIGINT, ARROW_INT, 8, 0},
    {DUCKDB_TYPE_HUGEINT, ARROW_DECIMAL, 16, 0},
    {DUCKDB_TYPE_DECIMAL, ARROW_DECIMAL, 0, 0},
    {DUCKDB_TYPE_FLOAT, ARROW_FLOAT, 4, 1},
    {DUCKDB_TYPE_DOUBLE, ARROW_FLOAT, 8, 2},
    {DUCKDB_TYPE_DATE, ARROW_DATE, 4, 0},
    {DUCKDB_TYPE_TIMESTAMP_S, ARROW_TIMESTAMP, 8, 0},
    {DUCKDB_TYPE_TIMESTAMP_MS, ARROW_TIMESTAMP, 8, 1},
    {DUCKDB_TYPE_TIMESTAMP, ARROW_TIMESTAMP, 8, 2},
    {DUCKDB_TYPE_TIMESTAMP_NS, ARROW_TIMESTAMP, 8, 3},
    {DUCKDB_TYPE_VARCHAR, ARROW_UTF8, 0, 0},
    {DUCKDB_TYPE_LIST, ARROW_LIST, 0, 0},
    {DUCKDB_TYPE_ARRAY, ARROW_FIXED_LIST, 0, 0},
};

/* Columns of lists have one child, which has the elements of all lists. */
struct arrow_column {
	char *name;
	struct hr_shape *shape;
	const struct arrow_mapping *map;
	struct hr_buffer valid; /* a byte for each row */
	struct hr_buffer data;	/* a byte for each row of BOOLEAN */
	struct hr_buffer offsets;
	uint64_t rows, nulls;
	struct arrow_column *child;
};

struct hr_arrow {
	FILE *to;
	char *notes;
	struct arrow_column *columns;
	struct hr_shape *shapes;
	unsigned n_columns;
	uint64_t rows;
	int error; /* -errno of the first write that failed; 0: none */
	struct hr_flat flat;
};

int hr_arrow_new(FILE *to, const char *notes, struct hr_arrow **ret)
{
	struct hr_arrow *a = calloc(1, sizeof(*a));

	if (a == NULL || (a->notes = strdup(notes)) == NULL) {
		free(a);
		return -ENOMEM;
	}
	a->to = to;
	*ret = a;
	return 0;
}

static void arrow_column_done(struct arrow_column *c)
{
	if (c->child != NULL)
		arrow_column_done(c->child);
	free(c->child);
	free(c->name);
	hr_buffer_done(&c->valid);
	hr_buffer_done(&c->data);
	hr_buffer_done(&c->offsets);
}

void hr_arrow_free(struct hr_arrow *a)
{
	if (a == NULL)
		return;
	for (unsigned i = 0; i < a->n_columns; i++) {
		arrow_column_done(&a->columns[i]);
		hr_shape_done(&a->shapes[i]);
	}
	free(a->columns);
	free(a->shapes);
	free(a->notes);
	hr_flat_done(&a->flat);
	free(a);
}

uint64_t hr_arrow_rows(const struct hr_arrow *a)
{
	return a->rows;
}

/* ---- rows ---- */

static void add_zeros(struct hr_buffer *b, size_t n)
{
	static const char zeros[64];

	for (; n > 0; n -= n < sizeof(zeros) ? n : sizeof(zeros))
		hr_buffer_add(b, zeros, n < sizeof(zeros) ? n : sizeof(zeros));
}

static void add_offset(struct arrow_column *c, uint64_t end)
{
	int32_t offset = (int32_t)end;

	hr_buffer_add(&c->offsets, (const char *)&offset, sizeof(offset));
}

static void add_rows(struct arrow_column *c, duckdb_vector v, idx_t from, idx_t n);

static void add_list(struct arrow_column *c, duckdb_vector v, idx_t row, bool null)
{
	const duckdb_list_entry *entry = (const duckdb_list_entry *)hr_duckdb.vector_get_data(v);
	duckdb_vector child;

	if (c->map->to == ARROW_FIXED_LIST) {
		child = hr_duckdb.array_vector_get_child(v);
		add_rows(c->child, child, row * c->shape->array, c->shape->array);
		return;
	}
	child = hr_duckdb.list_vector_get_child(v);
	if (!null)
		add_rows(c->child, child, entry[row].offset, entry[row].length);
	add_offset(c, c->child->rows);
}

static void add_value(struct arrow_column *c, duckdb_vector v, const void *data, idx_t row,
		      bool null)
{
	const char *text;
	__int128 decimal;
	size_t n;

	switch (c->map->to) {
	case ARROW_UTF8:
		if (!null && hr_value_plain(c->shape, v, row, &text, &n))
			hr_buffer_add(&c->data, text, n);
		add_offset(c, c->data.n);
		break;
	case ARROW_LIST:
	case ARROW_FIXED_LIST:
		add_list(c, v, row, null);
		break;
	default:
		if (null) {
			add_zeros(&c->data, c->map->bytes > 0 ? c->map->bytes : sizeof(decimal));
		} else if (c->map->bytes == 0) {
			decimal = hr_value_integer(c->shape->internal, data, row);
			hr_buffer_add(&c->data, (const char *)&decimal, sizeof(decimal));
		} else {
			hr_buffer_add(&c->data, (const char *)data + row * c->map->bytes,
				      c->map->bytes);
		}
		break;
	}
}

static void add_rows(struct arrow_column *c, duckdb_vector v, idx_t from, idx_t n)
{
	const void *data = hr_duckdb.vector_get_data(v);
	bool fixed = c->map->bytes > 0, any_null = hr_duckdb.vector_get_validity(v) != NULL;

	if (fixed && !any_null)
		hr_buffer_add(&c->data, (const char *)data + from * c->map->bytes,
			      n * c->map->bytes);
	for (idx_t i = from; i < from + n; i++) {
		bool null = any_null && hr_value_is_null(v, i);

		if (!fixed || any_null)
			add_value(c, v, data, i, null);
		hr_buffer_add(&c->valid, null ? "" : "\1", 1);
		c->nulls += null;
	}
	c->rows += n;
}

/* ---- messages ---- */

static void arrow_put(struct hr_arrow *a, const void *data, size_t n)
{
	if (a->error == 0 && fwrite(data, 1, n, a->to) < n)
		a->error = errno != 0 ? -errno : -EIO;
}

static void write_padded(struct hr_arrow *a, const void *data, size_t n)
{
	static const char zeros[ALIGN];

	if (n > 0)
		arrow_put(a, data, n);
	arrow_put(a, zeros, (size_t)-n % ALIGN);
}

/* Writes the metadata of a message: its length with padding, and the flatbuffer. */
static int write_message(struct hr_arrow *a, unsigned type, uint32_t header, uint64_t body_bytes)
{
	struct hr_flat *f = &a->flat;
	const uint8_t *data;
	uint32_t lead[2] = {UINT32_MAX, 0};
	size_t n;

	hr_flat_begin(f);
	hr_flat_number(f, MESSAGE_BODY_BYTES, body_bytes, 8);
	hr_flat_reference(f, MESSAGE_HEADER, header);
	hr_flat_number(f, MESSAGE_VERSION, VERSION_V5, 2);
	hr_flat_number(f, MESSAGE_HEADER_TYPE, type, 1);
	data = hr_flat_finish(f, hr_flat_end(f), &n);
	if (data == NULL)
		return -ENOMEM;
	lead[1] = (uint32_t)((n + ALIGN - 1) / ALIGN * ALIGN);
	arrow_put(a, lead, sizeof(lead));
	write_padded(a, data, n);
	return a->error;
}

/* ---- the schema ---- */

static uint32_t arrow_type_table(struct hr_flat *f, const struct arrow_column *c)
{
	const struct arrow_mapping *m = c->map;

	hr_flat_begin(f);
	switch (m->to) {
	case ARROW_INT: /* number of bits; whether it has a sign */
		hr_flat_number(f, 0, m->bytes * UINT64_C(8), 4);
		hr_flat_number(f, 1, m->parameter, 1);
		break;
	case ARROW_DECIMAL: /* precision, scale */
		hr_flat_number(f, 0, 38, 4);
		hr_flat_number(f, 1, c->shape->scale, 4);
		break;
	case ARROW_FLOAT: /* precision */
	case ARROW_DATE:  /* unit */
	case ARROW_TIMESTAMP:
		hr_flat_number(f, 0, m->parameter, 2);
		break;
	case ARROW_FIXED_LIST: /* length */
		hr_flat_number(f, 0, c->shape->array, 4);
		break;
	default:
		break;
	}
	return hr_flat_end(f);
}

static uint32_t field_table(struct hr_flat *f, const struct arrow_column *c)
{
	uint32_t child = c->child != NULL ? field_table(f, c->child) : 0;
	uint32_t children = hr_flat_vector(f, &child, c->child != NULL ? 1 : 0);
	uint32_t type = arrow_type_table(f, c), name = hr_flat_string(f, c->name);

	hr_flat_begin(f);
	hr_flat_reference(f, FIELD_NAME, name);
	hr_flat_reference(f, FIELD_TYPE, type);
	hr_flat_reference(f, FIELD_CHILDREN, children);
	hr_flat_number(f, FIELD_NULLABLE, 1, 1);
	hr_flat_number(f, FIELD_TYPE_TYPE, c->map->to, 1);
	return hr_flat_end(f);
}

static uint32_t notes_table(struct hr_arrow *a)
{
	struct hr_flat *f = &a->flat;
	uint32_t key = hr_flat_string(f, "headrace_notes"), value = hr_flat_string(f, a->notes);
	uint32_t pair;

	hr_flat_begin(f);
	hr_flat_reference(f, KEY_VALUE_KEY, key);
	hr_flat_reference(f, KEY_VALUE_VALUE, value);
	pair = hr_flat_end(f);
	return hr_flat_vector(f, &pair, 1);
}

static int write_schema(struct hr_arrow *a)
{
	uint32_t *fields = calloc(a->n_columns + 1, sizeof(*fields)), list, metadata;

	if (fields == NULL)
		return -ENOMEM;
	hr_flat_reset(&a->flat);
	for (unsigned i = 0; i < a->n_columns; i++)
		fields[i] = field_table(&a->flat, &a->columns[i]);
	list = hr_flat_vector(&a->flat, fields, a->n_columns);
	metadata = notes_table(a);
	free(fields);
	hr_flat_begin(&a->flat);
	hr_flat_reference(&a->flat, SCHEMA_FIELDS, list);
	hr_flat_reference(&a->flat, SCHEMA_METADATA, metadata);
	return write_message(a, HEADER_SCHEMA, hr_flat_end(&a->flat), 0);
}

/* ---- batches ---- */

struct arrow_node {
	uint64_t rows, nulls;
};

struct arrow_place {
	uint64_t offset, bytes;
};

/* The buffers of a batch: first their places, and then, in the same order, their content. */
struct arrow_body {
	struct arrow_node *nodes;
	struct arrow_place *buffers;
	const struct hr_buffer **content;
	size_t n_nodes, n_buffers;
	uint64_t bytes;
};

static void body_add(struct arrow_body *b, const struct hr_buffer *content)
{
	b->content[b->n_buffers] = content;
	b->buffers[b->n_buffers++] = (struct arrow_place){b->bytes, content->n};
	b->bytes += (content->n + ALIGN - 1) / ALIGN * ALIGN;
}

/* Replaces the bytes 0 and 1 by bits, the first one lowest. */
static void pack_bits(struct hr_buffer *b)
{
	size_t n = b->n;

	for (size_t i = 0; i < n; i += 8) {
		unsigned bits = 0;

		for (size_t k = 0; k < 8 && i + k < n; k++)
			bits |= (unsigned)(b->data[i + k] != 0) << k;
		b->data[i / 8] = (char)bits;
	}
	b->n = (n + 7) / 8;
}

static void body_column(struct arrow_body *b, struct arrow_column *c)
{
	b->nodes[b->n_nodes++] = (struct arrow_node){c->rows, c->nulls};
	pack_bits(&c->valid);
	if (c->nulls == 0)
		c->valid.n = 0; /* then the bitmap may be left out */
	body_add(b, &c->valid);
	if (c->map->to == ARROW_BOOL)
		pack_bits(&c->data);
	if (c->map->to == ARROW_UTF8 || c->map->to == ARROW_LIST)
		body_add(b, &c->offsets);
	if (c->child != NULL)
		body_column(b, c->child);
	else
		body_add(b, &c->data);
}

static bool column_failed(const struct arrow_column *c)
{
	return c->valid.failed || c->data.failed || c->offsets.failed ||
	       (c->child != NULL && column_failed(c->child));
}

static void column_reset(struct arrow_column *c)
{
	c->valid.n = c->data.n = c->offsets.n = 0;
	c->rows = c->nulls = 0;
	if (c->map->to == ARROW_UTF8 || c->map->to == ARROW_LIST)
		add_offset(c, 0);
	if (c->child != NULL)
		column_reset(c->child);
}

static int write_body(struct hr_arrow *a, const struct arrow_body *b, uint64_t rows)
{
	uint32_t nodes, buffers;
	int r;

	hr_flat_reset(&a->flat);
	buffers = hr_flat_structs(&a->flat, b->buffers, sizeof(*b->buffers), b->n_buffers);
	nodes = hr_flat_structs(&a->flat, b->nodes, sizeof(*b->nodes), b->n_nodes);
	hr_flat_begin(&a->flat);
	hr_flat_number(&a->flat, BATCH_LENGTH, rows, 8);
	hr_flat_reference(&a->flat, BATCH_NODES, nodes);
	hr_flat_reference(&a->flat, BATCH_BUFFERS, buffers);
	r = write_message(a, HEADER_BATCH, hr_flat_end(&a->flat), b->bytes);
	for (size_t i = 0; i < b->n_buffers && r == 0; i++)
		write_padded(a, b->content[i]->data, b->content[i]->n);
	return r == 0 ? a->error : r;
}

/* Writes the collected rows as a batch. */
static int write_batch(struct hr_arrow *a)
{
	size_t most = 0;
	struct arrow_body b = {0};
	int r = 0;

	if (a->n_columns == 0 || a->columns[0].rows == 0)
		return 0;
	for (unsigned i = 0; i < a->n_columns; i++) {
		for (const struct arrow_column *c = &a->columns[i]; c != NULL; c = c->child)
			most++;
		if (column_failed(&a->columns[i]))
			return -ENOMEM;
	}
	b.nodes = calloc(most, sizeof(*b.nodes));
	b.buffers = calloc(3 * most, sizeof(*b.buffers));
	b.content = calloc(3 * most, sizeof(*b.content));
	if (b.nodes == NULL || b.buffers == NULL || b.content == NULL)
		r = -ENOMEM;
	for (unsigned i = 0; i < a->n_columns && r == 0; i++)
		body_column(&b, &a->columns[i]);
	if (r == 0)
		r = write_body(a, &b, a->columns[0].rows);
	for (unsigned i = 0; i < a->n_columns; i++)
		column_reset(&a->columns[i]);
	free(b.nodes);
	free(b.buffers);
	free(b.content);
	return r;
}

/* ---- the sink ---- */

/* Returns 0, -ENOMEM or -ENOTSUP. */
static int column_init(struct arrow_column *c, const char *name, struct hr_shape *shape)
{
	*c = (struct arrow_column){.name = strdup(name), .shape = shape};
	for (size_t i = 0; i < sizeof(mappings) / sizeof(mappings[0]); i++)
		if (mappings[i].from == shape->type)
			c->map = &mappings[i];
	if (c->name == NULL)
		return -ENOMEM;
	if (c->map == NULL)
		return -ENOTSUP;
	if (c->map->to == ARROW_LIST || c->map->to == ARROW_FIXED_LIST) {
		int r;

		c->child = calloc(1, sizeof(*c->child));
		r = c->child != NULL ? column_init(c->child, "item", &shape->children[0]) : -ENOMEM;
		if (r < 0)
			return r;
	}
	column_reset(c);
	return 0;
}

static int arrow_begin_column(struct hr_arrow *a, duckdb_result *result, unsigned i,
			      char **ret_error)
{
	duckdb_logical_type type = hr_duckdb.column_logical_type(result, i);
	const char *name = hr_duckdb.column_name(result, i);
	int r = hr_shape_init(&a->shapes[i], type);

	a->n_columns++;
	if (r == 0)
		r = column_init(&a->columns[i], name, &a->shapes[i]);
	hr_duckdb.destroy_logical_type(&type);
	if (r == -ENOTSUP)
		r = hr_text_fail(r, ret_error,
				 "Arrow has no type for the column %s: cast it to VARCHAR", name);
	return r;
}

static int arrow_begin(void *self, duckdb_result *result, char **ret_error)
{
	struct hr_arrow *a = self;
	unsigned n = (unsigned)hr_duckdb.column_count(result);
	int r = 0;

	a->columns = calloc(n + 1, sizeof(*a->columns));
	a->shapes = calloc(n + 1, sizeof(*a->shapes));
	if (a->columns == NULL || a->shapes == NULL)
		return -ENOMEM;
	for (unsigned i = 0; i < n && r == 0; i++)
		r = arrow_begin_column(a, result, i, ret_error);
	return r < 0 ? r : write_schema(a);
}

static int arrow_chunk(void *self, duckdb_data_chunk chunk)
{
	struct hr_arrow *a = self;
	idx_t n = hr_duckdb.data_chunk_get_size(chunk);
	bool full = false;

	for (unsigned i = 0; i < a->n_columns; i++) {
		struct arrow_column *c = &a->columns[i];

		add_rows(c, hr_duckdb.data_chunk_get_vector(chunk, i), 0, n);
		full |= c->rows >= BATCH_ROWS || c->data.n >= BATCH_BYTES;
	}
	a->rows += n;
	return full ? write_batch(a) : 0;
}

static int arrow_end(void *self)
{
	static const uint32_t end[2] = {UINT32_MAX, 0};
	struct hr_arrow *a = self;
	int r = write_batch(a);

	if (r < 0)
		return r;
	arrow_put(a, end, sizeof(end));
	return a->error;
}

struct hr_query_sink hr_arrow_sink(struct hr_arrow *a)
{
	return (struct hr_query_sink){arrow_begin, arrow_chunk, arrow_end, a};
}

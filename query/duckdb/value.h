/* SPDX-License-Identifier: Apache-2.0 */
/* value.h - prints a value of any SQL type. A shape, made once for a column, describes its type. */
#ifndef HEADRACE_QUERY_DUCKDB_VALUE_H
#define HEADRACE_QUERY_DUCKDB_VALUE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "query/duckdb/duckdb_api.h"

/* A text that grows. `failed`: memory ran out, so the text is incomplete. */
struct hr_buffer {
	char *data;
	size_t n, size;
	bool failed;
};
void hr_buffer_add(struct hr_buffer *b, const char *text, size_t n);
__attribute__((format(printf, 2, 3))) void hr_buffer_print(struct hr_buffer *b, const char *format,
							   ...);
void hr_buffer_done(struct hr_buffer *b);

struct hr_shape {
	duckdb_type type;
	bool json;	      /* a VARCHAR of type JSON: printed unchanged */
	duckdb_type internal; /* type of the integers that a DECIMAL or ENUM consists of */
	unsigned scale;	      /* of a DECIMAL */
	uint64_t array;	      /* length of an ARRAY */
	struct hr_shape *children;
	char **names; /* names of the members of a STRUCT */
	unsigned n_children;
	duckdb_logical_type logical; /* an ENUM: the type, which has its texts; else NULL */
};

/* Returns 0, -ENOMEM, or -ENOTSUP: such a value cannot be printed (cast it to VARCHAR). */
int hr_shape_init(struct hr_shape *s, duckdb_logical_type type);
void hr_shape_done(struct hr_shape *s);

/* Whether values are numbers, which are aligned right in tables, and not quoted in JSON. */
bool hr_shape_is_number(const struct hr_shape *s);

bool hr_value_is_null(duckdb_vector vector, idx_t row);

/* Returns an integer of this type that is not NULL. A DECIMAL or ENUM consists of integers. */
__int128 hr_value_integer(duckdb_type type, const void *data, idx_t row);

/* Appends a value that is not NULL: texts without quotes, nested values as JSON. */
void hr_value_text(struct hr_buffer *b, const struct hr_shape *s, duckdb_vector vector, idx_t row);

/* Appends a value as JSON. NULL, NaN and infinities become null. */
void hr_value_json(struct hr_buffer *b, const struct hr_shape *s, duckdb_vector vector, idx_t row);

/* Returns a text that is not NULL, without copying it. False: the value is no text. */
bool hr_value_plain(const struct hr_shape *s, duckdb_vector vector, idx_t row,
		    const char **ret_text, size_t *ret_n);

/* Appends a field of CSV. An empty text becomes "", because NULL is an empty field. */
void hr_value_csv(struct hr_buffer *b, const char *text, size_t n);

/* hr_value_json_string appends a JSON string; hr_value_json_escape appends a part of one. */
void hr_value_json_escape(struct hr_buffer *b, const char *text, size_t n);
void hr_value_json_string(struct hr_buffer *b, const char *text, size_t n);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * value.h - writes a value of any SQL type as text. A shape describes a column's type, and is made
 * once for the column.
 */
#ifndef HEADRACE_QUERY_DUCKDB_VALUE_H
#define HEADRACE_QUERY_DUCKDB_VALUE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "query/duckdb/duckdb_api.h"

/* A text that grows. `failed`: memory ran out, so the text is not complete. */
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
	bool json;	      /* a VARCHAR of type JSON, printed unchanged */
	duckdb_type internal; /* integer type of the values of a DECIMAL or ENUM */
	unsigned scale;	      /* scale of a DECIMAL */
	uint64_t array;	      /* number of elements of an ARRAY */
	struct hr_shape *children;
	char **names; /* names of a STRUCT's children */
	unsigned n_children;
	duckdb_logical_type logical; /* the type of an ENUM, for looking up its texts; else NULL */
};

/* Returns 0; -ENOTSUP: the type cannot be printed (cast it to VARCHAR); -ENOMEM. */
int hr_shape_init(struct hr_shape *s, duckdb_logical_type type);
void hr_shape_done(struct hr_shape *s);

/* Whether the type is a number: aligned right in tables, not quoted in JSON. */
bool hr_shape_is_number(const struct hr_shape *s);

bool hr_value_is_null(duckdb_vector vector, idx_t row);

/* Appends a cell that is not NULL: texts without quotes, nested values as JSON. */
void hr_value_text(struct hr_buffer *b, const struct hr_shape *s, duckdb_vector vector, idx_t row);

/* Appends a cell as JSON. NULL, NaN and infinities become null. */
void hr_value_json(struct hr_buffer *b, const struct hr_shape *s, duckdb_vector vector, idx_t row);

/* Returns a text cell that is not NULL, without a copy. False: the column has another type. */
bool hr_value_plain(const struct hr_shape *s, duckdb_vector vector, idx_t row,
		    const char **ret_text, size_t *ret_n);

/* _escape appends a part of a JSON string; _string appends a whole one. */
void hr_value_json_escape(struct hr_buffer *b, const char *text, size_t n);
void hr_value_json_string(struct hr_buffer *b, const char *text, size_t n);

#endif

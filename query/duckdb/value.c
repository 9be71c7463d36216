/* SPDX-License-Identifier: Apache-2.0 */
#include "query/duckdb/value.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAX_NESTING 32

/* ---- buffers ---- */

static bool buffer_room(struct hr_buffer *b, size_t more)
{
	size_t size = b->size == 0 ? 256 : b->size;
	char *data;

	if (b->size - b->n > more)
		return true;
	while (size - b->n <= more)
		size *= 2;
	data = realloc(b->data, size);
	if (data == NULL) {
		b->failed = true;
		return false;
	}
	b->data = data;
	b->size = size;
	return true;
}

void hr_buffer_add(struct hr_buffer *b, const char *text, size_t n)
{
	if (n == 0 || !buffer_room(b, n))
		return;
	memcpy(b->data + b->n, text, n);
	b->n += n;
}

void hr_buffer_print(struct hr_buffer *b, const char *format, ...)
{
	char text[128]; /* enough for any number, date or time */
	va_list args;
	int n;

	va_start(args, format);
	// NOLINTNEXTLINE(clang-analyzer-valist.Uninitialized): va_start is one line above
	n = vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	hr_buffer_add(b, text, n < (int)sizeof(text) ? (size_t)n : sizeof(text) - 1);
}

void hr_buffer_done(struct hr_buffer *b)
{
	free(b->data);
	*b = (struct hr_buffer){0};
}

/* ---- shapes ---- */

static int init_child(struct hr_shape *s, unsigned i, duckdb_logical_type type, unsigned depth);

static int init_children(struct hr_shape *s, duckdb_logical_type type, unsigned depth)
{
	duckdb_logical_type child;
	int r = 0;

	if (s->type == DUCKDB_TYPE_STRUCT)
		s->n_children = (unsigned)hr_duckdb.struct_type_child_count(type);
	else
		s->n_children = 1;
	s->children = calloc(s->n_children, sizeof(*s->children));
	s->names = calloc(s->n_children, sizeof(*s->names));
	if (s->children == NULL || s->names == NULL)
		return -ENOMEM;
	for (unsigned i = 0; r == 0 && i < s->n_children; i++) {
		if (s->type == DUCKDB_TYPE_STRUCT) {
			s->names[i] = hr_duckdb.struct_type_child_name(type, i);
			child = hr_duckdb.struct_type_child_type(type, i);
		} else if (s->type == DUCKDB_TYPE_ARRAY) {
			s->array = hr_duckdb.array_type_array_size(type);
			child = hr_duckdb.array_type_child_type(type);
		} else { /* a MAP is a list of structs with a key and a value */
			child = hr_duckdb.list_type_child_type(type);
		}
		r = init_child(s, i, child, depth);
		hr_duckdb.destroy_logical_type(&child);
	}
	return r;
}

static bool is_json(duckdb_logical_type type)
{
	char *alias = hr_duckdb.logical_type_get_alias(type);
	bool json = alias != NULL && strcmp(alias, "JSON") == 0;

	if (alias != NULL)
		hr_duckdb.free(alias);
	return json;
}

static int init_depth(struct hr_shape *s, duckdb_logical_type type, unsigned depth)
{
	*s = (struct hr_shape){.type = hr_duckdb.get_type_id(type)};
	if (depth > MAX_NESTING)
		return -ENOTSUP;
	switch (s->type) {
	case DUCKDB_TYPE_VARCHAR:
		s->json = is_json(type);
		return 0;
	case DUCKDB_TYPE_DECIMAL:
		s->scale = hr_duckdb.decimal_scale(type);
		s->internal = hr_duckdb.decimal_internal_type(type);
		return 0;
	case DUCKDB_TYPE_ENUM:
		s->internal = hr_duckdb.enum_internal_type(type);
		s->logical = type;
		return 0;
	case DUCKDB_TYPE_LIST:
	case DUCKDB_TYPE_MAP:
	case DUCKDB_TYPE_ARRAY:
	case DUCKDB_TYPE_STRUCT:
		return init_children(s, type, depth);
	case DUCKDB_TYPE_SQLNULL:
	case DUCKDB_TYPE_UUID:
	case DUCKDB_TYPE_UHUGEINT:
	case DUCKDB_TYPE_TIMESTAMP_TZ:
		return 0;
	default:
		return s->type >= DUCKDB_TYPE_BOOLEAN && s->type <= DUCKDB_TYPE_TIMESTAMP_NS
			   ? 0
			   : -ENOTSUP;
	}
}

static int init_child(struct hr_shape *s, unsigned i, duckdb_logical_type type, unsigned depth)
{
	int r = init_depth(&s->children[i], type, depth + 1);

	/* The texts of a nested enum cannot be read later, because the caller destroys the type. */
	return r == 0 && s->children[i].type == DUCKDB_TYPE_ENUM ? -ENOTSUP : r;
}

int hr_shape_init(struct hr_shape *s, duckdb_logical_type type)
{
	return init_depth(s, type, 0);
}

void hr_shape_done(struct hr_shape *s)
{
	for (unsigned i = 0; i < s->n_children; i++) {
		if (s->children != NULL)
			hr_shape_done(&s->children[i]);
		if (s->names != NULL)
			hr_duckdb.free(s->names[i]);
	}
	free(s->children);
	free(s->names);
	*s = (struct hr_shape){0};
}

bool hr_shape_is_number(const struct hr_shape *s)
{
	switch (s->type) {
	case DUCKDB_TYPE_HUGEINT:
	case DUCKDB_TYPE_UHUGEINT:
	case DUCKDB_TYPE_DECIMAL:
		return true;
	default:
		return s->type >= DUCKDB_TYPE_TINYINT && s->type <= DUCKDB_TYPE_DOUBLE;
	}
}

bool hr_value_is_null(duckdb_vector vector, idx_t row)
{
	const uint64_t *validity = hr_duckdb.vector_get_validity(vector);

	return validity != NULL && (validity[row / 64] >> (row % 64) & 1) == 0;
}

/* ---- scalars ---- */

__int128 hr_value_integer(duckdb_type type, const void *data, idx_t row)
{
	switch (type) {
	case DUCKDB_TYPE_TINYINT:
		return ((const int8_t *)data)[row];
	case DUCKDB_TYPE_SMALLINT:
		return ((const int16_t *)data)[row];
	case DUCKDB_TYPE_INTEGER:
		return ((const int32_t *)data)[row];
	case DUCKDB_TYPE_UTINYINT:
		return ((const uint8_t *)data)[row];
	case DUCKDB_TYPE_USMALLINT:
		return ((const uint16_t *)data)[row];
	case DUCKDB_TYPE_UINTEGER:
		return ((const uint32_t *)data)[row];
	case DUCKDB_TYPE_UBIGINT:
		return ((const uint64_t *)data)[row];
	case DUCKDB_TYPE_HUGEINT: {
		duckdb_hugeint h = ((const duckdb_hugeint *)data)[row];

		return (__int128)((unsigned __int128)(uint64_t)h.upper << 64 | h.lower);
	}
	default:
		return ((const int64_t *)data)[row];
	}
}

static void print_unsigned(struct hr_buffer *b, unsigned __int128 v, unsigned scale)
{
	char text[64];
	size_t at = sizeof(text);
	unsigned digits = 0;

	do {
		if (scale != 0 && digits == scale)
			text[--at] = '.';
		text[--at] = (char)('0' + (unsigned)(v % 10));
		v /= 10;
		digits++;
	} while (v != 0 || (scale != 0 && digits <= scale));
	hr_buffer_add(b, text + at, sizeof(text) - at);
}

static void print_integer(struct hr_buffer *b, __int128 v, unsigned scale)
{
	if (v < 0)
		hr_buffer_add(b, "-", 1);
	print_unsigned(b, v < 0 ? -(unsigned __int128)v : (unsigned __int128)v, scale);
}

static bool scientific(const char *text, int *ret_digits, int *ret_exponent)
{
	const char *e = strchr(text, 'e');

	*ret_digits = 0;
	for (const char *c = text; e != NULL && c < e; c++)
		*ret_digits += *c >= '0' && *c <= '9';
	if (e != NULL)
		*ret_exponent = (int)strtol(e + 1, NULL, 10);
	return e != NULL;
}

/* Prints the shortest text of the same number. Small numbers (from 1e-12) have no exponent. */
static void print_double(struct hr_buffer *b, double v, bool is_float)
{
	int significant, exponent;
	char text[64];

	for (int digits = is_float ? 6 : 15; digits <= 17; digits++) {
		snprintf(text, sizeof(text), "%.*g", digits, v);
		if (is_float ? strtof(text, NULL) == (float)v : strtod(text, NULL) == v)
			break;
	}
	if (scientific(text, &significant, &exponent) && exponent >= -12 && exponent < 0)
		snprintf(text, sizeof(text), "%.*f", significant - 1 - exponent, v);
	hr_buffer_add(b, text, strlen(text));
}

/* Prints a date, in days since 1970. Year 0 is 1 BC. */
static void print_date(struct hr_buffer *b, int64_t days)
{
	int64_t z = days + 719468;
	int64_t era = (z >= 0 ? z : z - 146096) / 146097;
	int64_t doe = z - era * 146097;
	int64_t yoe = (doe - doe / 1460 + doe / 36524 - doe / 146096) / 365;
	int64_t doy = doe - (365 * yoe + yoe / 4 - yoe / 100);
	int64_t mp = (5 * doy + 2) / 153;
	int64_t month = mp < 10 ? mp + 3 : mp - 9;
	int64_t year = yoe + era * 400 + (month <= 2);

	hr_buffer_print(b, "%04" PRId64 "-%02" PRId64 "-%02" PRId64 "%s",
			year > 0 ? year : 1 - year, month, doy - (153 * mp + 2) / 5 + 1,
			year > 0 ? "" : " (BC)");
}

/* Prints `infinity` as such, and its negative as -infinity. False: `v` is another value. */
static bool print_infinity(struct hr_buffer *b, int64_t v, int64_t infinity)
{
	const char *text = v < 0 ? "-infinity" : "infinity";

	if (v != infinity && v != -infinity)
		return false;
	hr_buffer_add(b, text, strlen(text));
	return true;
}

/* Prints a time of day, which is given in units of 1 / per_second seconds. */
static void print_time(struct hr_buffer *b, int64_t v, int64_t per_second)
{
	int64_t s = v / per_second, fraction = v % per_second;
	int decimals = 0;

	for (int64_t p = per_second; p > 1; p /= 10)
		decimals++;
	hr_buffer_print(b, "%02" PRId64 ":%02" PRId64 ":%02" PRId64, s / 3600, s / 60 % 60, s % 60);
	if (fraction != 0)
		hr_buffer_print(b, ".%0*" PRId64, decimals, fraction);
}

static void print_timestamp(struct hr_buffer *b, int64_t v, int64_t per_second)
{
	int64_t per_day = 86400 * per_second;
	int64_t days = v / per_day, rest = v % per_day;

	if (print_infinity(b, v, INT64_MAX))
		return;
	if (rest < 0) {
		days--;
		rest += per_day;
	}
	print_date(b, days);
	hr_buffer_add(b, " ", 1);
	print_time(b, rest, per_second);
}

static void print_interval(struct hr_buffer *b, duckdb_interval v)
{
	if (v.months != 0)
		hr_buffer_print(b, "%d months ", v.months);
	if (v.days != 0)
		hr_buffer_print(b, "%d days ", v.days);
	if (v.micros < 0)
		hr_buffer_add(b, "-", 1);
	print_time(b, v.micros < 0 ? -v.micros : v.micros, 1000000);
}

/* DuckDB inverts the top bit of a UUID, so that UUIDs are sorted like integers. */
static void print_uuid(struct hr_buffer *b, duckdb_hugeint v)
{
	uint64_t high = (uint64_t)v.upper ^ UINT64_C(1) << 63;

	hr_buffer_print(b, "%08x-%04x-%04x-%04x-%012" PRIx64, (unsigned)(high >> 32),
			(unsigned)(high >> 16 & 0xffff), (unsigned)(high & 0xffff),
			(unsigned)(v.lower >> 48), v.lower & UINT64_C(0xffffffffffff));
}

static const char *text_at(const void *data, idx_t row, uint32_t *ret_n)
{
	const duckdb_string_t *s = (const duckdb_string_t *)data + row;

	*ret_n = s->value.inlined.length;
	return *ret_n <= sizeof(s->value.inlined.inlined) ? s->value.inlined.inlined
							  : s->value.pointer.ptr;
}

static void print_blob(struct hr_buffer *b, const char *bytes, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++)
		hr_buffer_print(b, "\\x%02X", (unsigned char)bytes[i]);
}

static void print_enum(struct hr_buffer *b, const struct hr_shape *s, const void *data, idx_t row)
{
	idx_t index = (idx_t)hr_value_integer(s->internal, data, row);
	char *text = hr_duckdb.enum_dictionary_value(s->logical, index);

	hr_buffer_add(b, text, strlen(text));
	hr_duckdb.free(text);
}

static void print_scalar(struct hr_buffer *b, const struct hr_shape *s, duckdb_vector vector,
			 idx_t row)
{
	const void *data = hr_duckdb.vector_get_data(vector);
	const int64_t *i64 = data;
	const char *text;
	uint32_t n;

	switch (s->type) {
	case DUCKDB_TYPE_BOOLEAN:
		text = ((const bool *)data)[row] ? "true" : "false";
		hr_buffer_add(b, text, strlen(text));
		break;
	case DUCKDB_TYPE_FLOAT:
		print_double(b, ((const float *)data)[row], true);
		break;
	case DUCKDB_TYPE_DOUBLE:
		print_double(b, ((const double *)data)[row], false);
		break;
	case DUCKDB_TYPE_TIMESTAMP:
		print_timestamp(b, i64[row], 1000000);
		break;
	case DUCKDB_TYPE_TIMESTAMP_TZ:
		print_timestamp(b, i64[row], 1000000);
		hr_buffer_add(b, "+00", 3);
		break;
	case DUCKDB_TYPE_TIMESTAMP_S:
		print_timestamp(b, i64[row], 1);
		break;
	case DUCKDB_TYPE_TIMESTAMP_MS:
		print_timestamp(b, i64[row], 1000);
		break;
	case DUCKDB_TYPE_TIMESTAMP_NS:
		print_timestamp(b, i64[row], 1000000000);
		break;
	case DUCKDB_TYPE_DATE:
		if (!print_infinity(b, ((const int32_t *)data)[row], INT32_MAX))
			print_date(b, ((const int32_t *)data)[row]);
		break;
	case DUCKDB_TYPE_TIME:
		print_time(b, i64[row], 1000000);
		break;
	case DUCKDB_TYPE_INTERVAL:
		print_interval(b, ((const duckdb_interval *)data)[row]);
		break;
	case DUCKDB_TYPE_UUID:
		print_uuid(b, ((const duckdb_hugeint *)data)[row]);
		break;
	case DUCKDB_TYPE_VARCHAR:
		text = text_at(data, row, &n);
		hr_buffer_add(b, text, n);
		break;
	case DUCKDB_TYPE_BLOB:
		text = text_at(data, row, &n);
		print_blob(b, text, n);
		break;
	case DUCKDB_TYPE_ENUM:
		print_enum(b, s, data, row);
		break;
	case DUCKDB_TYPE_DECIMAL:
		print_integer(b, hr_value_integer(s->internal, data, row), s->scale);
		break;
	case DUCKDB_TYPE_UHUGEINT:
		print_unsigned(
		    b, (unsigned __int128)hr_value_integer(DUCKDB_TYPE_HUGEINT, data, row), 0);
		break;
	default:
		print_integer(b, hr_value_integer(s->type, data, row), 0);
	}
}

/* ---- nested ---- */

static void print_elements(struct hr_buffer *b, const struct hr_shape *s, duckdb_vector vector,
			   idx_t row)
{
	duckdb_list_entry e = {row * s->array, s->array};
	duckdb_vector child;

	if (s->type == DUCKDB_TYPE_ARRAY) {
		child = hr_duckdb.array_vector_get_child(vector);
	} else {
		e = ((const duckdb_list_entry *)hr_duckdb.vector_get_data(vector))[row];
		child = hr_duckdb.list_vector_get_child(vector);
	}
	hr_buffer_add(b, "[", 1);
	for (uint64_t i = 0; i < e.length; i++) {
		if (i > 0)
			hr_buffer_add(b, ", ", 2);
		hr_value_json(b, &s->children[0], child, e.offset + i);
	}
	hr_buffer_add(b, "]", 1);
}

static void print_members(struct hr_buffer *b, const struct hr_shape *s, duckdb_vector vector,
			  idx_t row)
{
	hr_buffer_add(b, "{", 1);
	for (unsigned i = 0; i < s->n_children; i++) {
		if (i > 0)
			hr_buffer_add(b, ", ", 2);
		hr_value_json_string(b, s->names[i], strlen(s->names[i]));
		hr_buffer_add(b, ": ", 2);
		hr_value_json(b, &s->children[i], hr_duckdb.struct_vector_get_child(vector, i),
			      row);
	}
	hr_buffer_add(b, "}", 1);
}

static bool print_nested(struct hr_buffer *b, const struct hr_shape *s, duckdb_vector vector,
			 idx_t row)
{
	if (s->type == DUCKDB_TYPE_STRUCT)
		print_members(b, s, vector, row);
	else if (s->n_children != 0)
		print_elements(b, s, vector, row);
	return s->n_children != 0;
}

void hr_value_text(struct hr_buffer *b, const struct hr_shape *s, duckdb_vector vector, idx_t row)
{
	if (!print_nested(b, s, vector, row))
		print_scalar(b, s, vector, row);
}

bool hr_value_plain(const struct hr_shape *s, duckdb_vector vector, idx_t row,
		    const char **ret_text, size_t *ret_n)
{
	uint32_t n;

	if (s->type != DUCKDB_TYPE_VARCHAR)
		return false;
	*ret_text = text_at(hr_duckdb.vector_get_data(vector), row, &n);
	*ret_n = n;
	return true;
}

void hr_value_json_escape(struct hr_buffer *b, const char *text, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		unsigned char c = (unsigned char)text[i];

		if (c == '"' || c == '\\')
			hr_buffer_add(b, "\\", 1);
		if (c < 0x20)
			hr_buffer_print(b, "\\u%04x", c);
		else
			hr_buffer_add(b, text + i, 1);
	}
}

void hr_value_json_string(struct hr_buffer *b, const char *text, size_t n)
{
	hr_buffer_add(b, "\"", 1);
	hr_value_json_escape(b, text, n);
	hr_buffer_add(b, "\"", 1);
}

void hr_value_json(struct hr_buffer *b, const struct hr_shape *s, duckdb_vector vector, idx_t row)
{
	size_t start = b->n;
	struct hr_buffer text = {0};
	double number = 0;

	if (hr_value_is_null(vector, row)) {
		hr_buffer_add(b, "null", 4);
		return;
	}
	if (s->type == DUCKDB_TYPE_DOUBLE)
		number = ((const double *)hr_duckdb.vector_get_data(vector))[row];
	else if (s->type == DUCKDB_TYPE_FLOAT)
		number = ((const float *)hr_duckdb.vector_get_data(vector))[row];
	if (!isfinite(number)) {
		hr_buffer_add(b, "null", 4);
		return;
	}
	if (print_nested(b, s, vector, row))
		return;
	print_scalar(b, s, vector, row);
	if (hr_shape_is_number(s) || s->type == DUCKDB_TYPE_BOOLEAN || s->json)
		return;
	hr_buffer_add(&text, b->data + start, b->n - start);
	b->n = start;
	hr_value_json_string(b, text.data, text.n);
	b->failed |= text.failed;
	hr_buffer_done(&text);
}

void hr_value_csv(struct hr_buffer *b, const char *text, size_t n)
{
	bool quote = n == 0;

	for (size_t i = 0; i < n && !quote; i++)
		quote = strchr(",\"\r\n", text[i]) != NULL;
	if (!quote) {
		hr_buffer_add(b, text, n);
		return;
	}
	hr_buffer_add(b, "\"", 1);
	while (n > 0) {
		const char *mark = memchr(text, '"', n);
		size_t span = mark != NULL ? (size_t)(mark - text) + 1 : n;

		hr_buffer_add(b, text, span);
		if (mark != NULL)
			hr_buffer_add(b, "\"", 1);
		text += span;
		n -= span;
	}
	hr_buffer_add(b, "\"", 1);
}

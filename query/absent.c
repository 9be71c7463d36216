/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "query/named.h"
#include "query/duckdb/value.h"

#define KNOWN_LINE "-- known "
#define SHOWN	   8u

/* The values in the store for an argument, and whether the requested value is one of them. */
struct known {
	const char *wanted;
	struct hr_shape shape;
	duckdb_logical_type type;
	struct hr_buffer list;
	uint64_t n;
	bool found;
};

static int absent_begin(void *self, duckdb_result *result, char **ret_error)
{
	struct known *k = self;

	(void)ret_error;
	k->type = hr_duckdb.column_logical_type(result, 0);
	return hr_shape_init(&k->shape, k->type);
}

static int absent_chunk_in(void *self, duckdb_data_chunk chunk)
{
	struct known *k = self;
	duckdb_vector v = hr_duckdb.data_chunk_get_vector(chunk, 0);

	for (idx_t row = 0; row < hr_duckdb.data_chunk_get_size(chunk); row++) {
		size_t before = k->list.n, start;

		if (hr_value_is_null(v, row))
			continue;
		if (before > 0)
			hr_buffer_add(&k->list, ", ", 2);
		start = k->list.n;
		hr_value_text(&k->list, &k->shape, v, row);
		k->found |= k->list.n - start == strlen(k->wanted) &&
			    memcmp(k->list.data + start, k->wanted, k->list.n - start) == 0;
		if (k->n++ >= SHOWN)
			k->list.n = before;
	}
	return 0;
}

static void report_absent(const struct known *k, const char *name, const struct hr_sink *messages)
{
	if (k->n == 0)
		hr_sink_line(messages, "no %s %s; the store has none at all", name, k->wanted);
	else if (k->n <= SHOWN)
		hr_sink_line(messages, "no %s %s; the store has: %.*s", name, k->wanted,
			     (int)k->list.n, k->list.data);
	else
		hr_sink_line(messages, "no %s %s; the store has: %.*s, and %" PRIu64 " more", name,
			     k->wanted, (int)k->list.n, k->list.data, k->n - SHOWN);
}

/* Returns the SQL of the line `known NAME` in the header of a query (malloc'ed), or NULL. */
static char *known_sql(const struct hr_named *q, const char *name)
{
	size_t n = strlen(name);

	for (const char *at = NULL; (at = hr_named_next(q, KNOWN_LINE, at)) != NULL;)
		if (strncmp(at, name, n) == 0 && at[n] == ':')
			return strndup(at + n + 1, strcspn(at + n + 1, "\n"));
	return NULL;
}

int hr_named_absent(struct hr_query *q, const struct hr_named_args *a,
		    const struct hr_sink *messages)
{
	int r = 0;

	for (size_t i = 0; r == 0 && i < a->n; i++) {
		char *sql = a->given[i] ? known_sql(a->query, a->list[i].name) : NULL;
		struct known k = {.wanted = a->list[i].text};
		const struct hr_query_sink sink = {absent_begin, absent_chunk_in, NULL, &k};
		char *error = NULL;

		if (sql == NULL)
			continue;
		r = hr_query_run(q, sql, a->list, a->n, &sink, &error);
		if (r == 0 && !k.found && !k.list.failed)
			report_absent(&k, a->list[i].name, messages);
		free(error);
		free(sql);
		hr_shape_done(&k.shape);
		hr_duckdb.destroy_logical_type(&k.type);
		hr_buffer_done(&k.list);
	}
	return r;
}

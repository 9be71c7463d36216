/* SPDX-License-Identifier: Apache-2.0 */
#include "collector/query/notes.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

#include "collector/query/internal.h"
#include "collector/query/named.h"
#include "collector/query/value.h"

struct notes {
	void (*say)(const char *text);
	unsigned max;
	uint64_t n;
};

static void add(struct notes *notes, const char *text)
{
	if (notes->n++ < notes->max)
		notes->say(text);
}

static int begin(void *self, duckdb_result *result)
{
	(void)self;
	(void)result;
	return 0;
}

static int chunk_in(void *self, duckdb_data_chunk chunk)
{
	static const struct hr_shape text = {.type = DUCKDB_TYPE_VARCHAR};
	duckdb_vector v = hr_duckdb.data_chunk_get_vector(chunk, 0);
	struct hr_buffer line = {0};

	for (idx_t row = 0; row < hr_duckdb.data_chunk_get_size(chunk); row++) {
		line.n = 0;
		hr_value_text(&line, &text, v, row);
		hr_buffer_add(&line, "", 1);
		if (!line.failed)
			add(self, line.data);
	}
	hr_buffer_done(&line);
	return 0;
}

static int end(void *self)
{
	(void)self;
	return 0;
}

static void add_damage(struct hr_query *q, struct notes *notes)
{
	const char *first;
	uint64_t n = hr_query_damaged(q, &first);
	char *text;

	if (n == 0 ||
	    asprintf(&text, "%" PRIu64 " frames could not be read and are left out; the first: %s",
		     n, first != NULL ? first : "") < 0)
		return;
	add(notes, text);
	free(text);
}

int hr_query_notes(struct hr_query *q, unsigned max, void (*say)(const char *text))
{
	struct notes notes = {say, max, 0};
	const struct hr_query_sink sink = {begin, chunk_in, end, &notes};
	const struct hr_problem *problems;
	size_t n = hr_catalog_problems(q->catalog, &problems);
	char *error = NULL, *more;
	int r;

	for (size_t i = 0; i < n; i++)
		add(&notes, problems[i].text);
	r = hr_query_run(q, hr__notes_list[0].sql, NULL, 0, &sink, &error);
	if (r < 0 && error != NULL)
		add(&notes, error);
	free(error);
	add_damage(q, &notes);
	if (notes.n > max &&
	    asprintf(&more, "and %" PRIu64 " more notes of this kind", notes.n - max) >= 0) {
		say(more);
		free(more);
	}
	return r;
}

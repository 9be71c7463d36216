/* SPDX-License-Identifier: Apache-2.0 */
#include "query/notes.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "query/tables/internal.h"
#include "query/duckdb/value.h"
#include "store/left_out.h"
#include "common/loss.h"
#include "common/text.h"

#define NOTE_LINE   "-- note: "
#define MAX_RETIRED 12u

struct notes {
	const struct hr_sink *messages;
	unsigned max;
	uint64_t n;
};

/* `hint`: a second line with advice; NULL or "": none */
static void notes_add_hint(struct notes *notes, const char *text, const char *hint)
{
	bool shown = notes->n++ < notes->max, given = hr_text_given(hint);
	char *line = shown ? hr_text_line(text) : NULL;
	char *second = shown && given ? hr_text_line(hint) : NULL;

	if (line != NULL)
		hr_sink_line(notes->messages, "%s%s%s", line, second != NULL ? "\n" : "",
			     second != NULL ? second : "");
	free(line);
	free(second);
}

static void notes_add(struct notes *notes, const char *text)
{
	notes_add_hint(notes, text, NULL);
}

/*
 * Adds a note that SQL selected. A line end separates its hint. (Texts of a recording are escaped,
 * so they contain no line end.)
 */
static void notes_add_row(struct notes *notes, char *text)
{
	char *hint = strchr(text, '\n');

	if (hint != NULL)
		*hint++ = '\0';
	notes_add_hint(notes, text, hint);
}

/* The columns of notes.sql, all VARCHAR. Notes of a named query have only NOTE_TEXT. */
enum { NOTE_TEXT, NOTE_WHY, NOTE_COUNT, NOTE_BYTES, NOTE_UNSURE, NOTE_REST, NOTE_COLUMNS };

static void add_row(struct notes *notes, struct hr_buffer *cells)
{
	struct hr_loss_sum loss = {.reason = cells[NOTE_WHY].data};
	char *sentence, *text;

	if (!hr_text_given(loss.reason)) {
		if (hr_text_given(cells[NOTE_TEXT].data))
			notes_add_row(notes, cells[NOTE_TEXT].data);
		return;
	}
	loss.count = strtoull(cells[NOTE_COUNT].data, NULL, 10);
	loss.bytes = strtoull(cells[NOTE_BYTES].data, NULL, 10);
	loss.totals_unsure = hr_text_given(cells[NOTE_UNSURE].data);
	sentence = hr_loss_text(&loss);
	if (sentence != NULL && asprintf(&text, "%s%s", cells[NOTE_TEXT].data, sentence) >= 0) {
		notes_add_hint(notes, text, cells[NOTE_REST].data);
		free(text);
	}
	free(sentence);
}

static int notes_chunk_in(void *self, duckdb_data_chunk chunk)
{
	static const struct hr_shape text = {.type = DUCKDB_TYPE_VARCHAR};
	struct hr_buffer cells[NOTE_COLUMNS] = {0};
	idx_t columns = hr_duckdb.data_chunk_get_column_count(chunk);

	for (idx_t row = 0; row < hr_duckdb.data_chunk_get_size(chunk); row++) {
		bool failed = false;

		for (idx_t i = 0; i < columns && i < NOTE_COLUMNS; i++) {
			duckdb_vector v = hr_duckdb.data_chunk_get_vector(chunk, i);

			cells[i].n = 0;
			if (!hr_value_is_null(v, row))
				hr_value_text(&cells[i], &text, v, row);
			hr_buffer_add(&cells[i], "", 1);
			failed |= cells[i].failed;
		}
		if (!failed && cells[NOTE_TEXT].data != NULL)
			add_row(self, cells);
	}
	for (idx_t i = 0; i < NOTE_COLUMNS; i++)
		hr_buffer_done(&cells[i]);
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
	notes_add(notes, text);
	free(text);
}

static int opens_in(void *self, duckdb_data_chunk chunk)
{
	duckdb_vector v = hr_duckdb.data_chunk_get_vector(chunk, 0);

	if (hr_duckdb.data_chunk_get_size(chunk) > 0)
		*(uint64_t *)self = *(const uint64_t *)hr_duckdb.vector_get_data(v);
	return 0;
}

/* Returns the number of recorded opens of data files; 0: unknown. */
static uint64_t recorded_opens(struct hr_query *q, const char *job)
{
	static const char sql[] =
	    "SELECT CAST(coalesce(sum(count - errors), 0) AS UBIGINT) FROM rollups "
	    "WHERE job = $job AND class = 'open' AND scope = 'data'";
	const struct hr_query_arg arg = {.name = "job", .text = job, .type = HR_ARG_VARCHAR};
	uint64_t opens = 0;
	const struct hr_query_sink sink = {.chunk = opens_in, .self = &opens};
	char *error = NULL;

	hr_query_run(q, sql, &arg, 1, &sink, &error);
	free(error);
	return opens;
}

static void add_left_out_of(struct hr_query *q, struct notes *notes, const char *job,
			    const struct hr_left_out *left_out)
{
	char *text = hr_left_out_text(left_out, 0), *line;

	if (text == NULL) /* nothing was left out, so the rollups need not be read */
		return;
	free(text);
	text = hr_left_out_text(left_out, recorded_opens(q, job));
	if (text != NULL && asprintf(&line, "job %s: not recorded: %s", job, text) >= 0) {
		notes_add(notes, line);
		free(line);
	}
	free(text);
}

static void add_left_out(struct hr_query *q, struct notes *notes)
{
	const struct hr_stream *streams;
	size_t n = hr_catalog_streams(q->catalog, &streams);
	struct hr_left_out left_out = {0};

	for (size_t i = 0; i < n; i++) {
		for (uint32_t p = 0; p < streams[i].n_processes; p++)
			(void)hr_left_out_take(&left_out, &streams[i].processes[p]);
		if (i + 1 < n && strcmp(streams[i].job, streams[i + 1].job) == 0)
			continue;
		add_left_out_of(q, notes, streams[i].job, &left_out);
		hr_left_out_done(&left_out);
	}
}

static void print_retired(FILE *to, const struct hr_retired *r)
{
	fprintf(to, "job %s: %u stream%s removed", r->job, r->streams,
		r->streams == 1 ? " was" : "s were");
	if (r->retired_ns > 0)
		fprintf(to, " on %s", hr_text_date(r->retired_ns).s);
	fputs(" (by age, size or an operator)", to);
	if (r->heard_ns > 0)
		fprintf(to, ", last message on %s", hr_text_date(r->heard_ns).s);
}

static void print_all_retired(FILE *to, const struct hr_retired *list, size_t n)
{
	uint64_t last_ns = 0;

	for (size_t i = 0; i < n; i++)
		if (list[i].retired_ns > last_ns)
			last_ns = list[i].retired_ns;
	fprintf(to,
		"streams of %zu jobs were removed (by age, size or an operator), the last on %s: ",
		n, hr_text_date(last_ns).s);
	for (size_t i = 0; i < n && i < MAX_RETIRED; i++)
		fprintf(to, "%s%s", i > 0 ? ", " : "", list[i].job);
	if (n > MAX_RETIRED)
		fprintf(to, " and %zu more", n - MAX_RETIRED);
}

char *hr_notes_retired(const struct hr_catalog *c, const char *job)
{
	const struct hr_retired *list;
	size_t n = hr_catalog_retired(c, &list), at = 0, bytes;
	char *text = NULL;
	FILE *to;

	while (job != NULL && at < n && strcmp(list[at].job, job) != 0)
		at++;
	if (at == n)
		return NULL;
	to = open_memstream(&text, &bytes);
	if (to == NULL)
		return NULL;
	if (job != NULL || n == 1)
		print_retired(to, &list[at]);
	else
		print_all_retired(to, list, n);
	return hr_text_close(to, &text);
}

static void add_retired(struct hr_query *q, struct notes *notes)
{
	char *text = hr_notes_retired(q->catalog, NULL);

	if (text != NULL)
		notes_add(notes, text);
	free(text);
}

int hr_query_notes(struct hr_query *q, unsigned max, const struct hr_sink *messages)
{
	struct notes notes = {messages, max, 0};
	const struct hr_query_sink sink = {.chunk = notes_chunk_in, .self = &notes};
	const struct hr_problem *problems;
	size_t n = hr_catalog_problems(q->catalog, &problems);
	char *error = NULL;
	int r;

	for (size_t i = 0; i < n; i++)
		notes_add(&notes, problems[i].text);
	r = hr_query_run(q, hr__notes_list[0].sql, NULL, 0, &sink, &error);
	if (r < 0 && error != NULL)
		notes_add(&notes, error);
	free(error);
	add_retired(q, &notes);
	add_left_out(q, &notes);
	add_damage(q, &notes);
	if (notes.n > max)
		hr_sink_line(messages, "and %" PRIu64 " more notes of this kind", notes.n - max);
	return r;
}

int hr_named_notes(struct hr_query *q, const struct hr_named_args *a,
		   const struct hr_sink *messages)
{
	struct notes notes = {messages, UINT_MAX, 0};
	const struct hr_query_sink sink = {.chunk = notes_chunk_in, .self = &notes};
	const char *line = NULL;
	int r = 0;

	while (r == 0 && (line = hr_named_next(a->query, NOTE_LINE, line)) != NULL) {
		char *sql = strndup(line, strcspn(line, "\n")), *error = NULL;

		r = sql != NULL ? hr_query_run(q, sql, a->list, a->n, &sink, &error) : -ENOMEM;
		free(error);
		free(sql);
	}
	return r;
}

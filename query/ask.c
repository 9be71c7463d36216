/* SPDX-License-Identifier: Apache-2.0 */
#include "query/ask.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "query/notes.h"
#include "query/duckdb/arrow.h"
#include "query/duckdb/output.h"
#include "common/near.h"
#include "common/text.h"

#define MAX_NOTES 20
#define MAX_JOBS  12

struct hr_asking {
	const struct hr_ask *a;
	struct hr_catalog *catalog;
	struct hr_query *q;
	uint64_t rows;
	_Atomic uint64_t done, total; /* progress of an export; total 0: none */
	atomic_bool interrupted;
};

static const char *const format_names[] = {"text", "list", "json", "csv", "arrow", "parquet"};

const char *hr_ask_format_name(enum hr_ask_format format)
{
	return format_names[format];
}

bool hr_ask_format(const char *name, enum hr_ask_format *ret)
{
	for (unsigned i = 0; i < sizeof(format_names) / sizeof(format_names[0]); i++) {
		if (strcmp(name, format_names[i]) == 0) {
			*ret = i;
			return true;
		}
	}
	return false;
}

/* ---- opening ---- */

/* Reports the replay of a store's journals. `text` has one line for each journal, or is NULL. */
static void report_recovered(const struct hr_ask *a, const char *store, char *text, int err)
{
	char *rest = text, *line;

	while ((line = strsep(&rest, "\n")) != NULL)
		if (line[0] != '\0')
			hr_sink_line(&a->messages, "%s", line);
	if (err < 0 && text == NULL)
		hr_sink_line(&a->messages, "%s: cannot recover the journal of a killed run: %s",
			     store, strerrordesc_np(-err));
	if (err == -EROFS)
		hr_sink_line(&a->messages,
			     "the answer lacks the data of that journal: copy %s to a writable "
			     "file system and query the copy",
			     store);
}

static enum hr_ask_status open_catalog(const struct hr_ask *a, const char *job,
				       struct hr_catalog **ret)
{
	struct hr_catalog_filter filter = a->filter;
	char *error = NULL;
	int err;

	filter.job = job;
	err = hr_catalog_open(a->stores, a->n_stores, &filter, ret, &error);
	if (err == 0)
		return HR_ASK_ANSWERED;
	if (error != NULL)
		hr_sink_line(&a->messages, "%s", error);
	else
		hr_sink_line(&a->messages, "%s: cannot read the store: %s", a->stores[0],
			     strerrordesc_np(-err));
	free(error);
	return HR_ASK_NO_STORE;
}

/* Returns the jobs of sorted streams as a text, "a, b and 3 more" (malloc'ed). NULL: no memory. */
static char *job_list(const struct hr_stream *streams, size_t n)
{
	char *text = NULL;
	size_t bytes, jobs = 0;
	char id[1024];
	FILE *to = open_memstream(&text, &bytes);

	if (to == NULL)
		return NULL;
	for (size_t i = 0; i < n; i++) {
		if (i > 0 && strcmp(streams[i].job, streams[i - 1].job) == 0)
			continue;
		hr_text_escape(id, sizeof(id), streams[i].job, strlen(streams[i].job));
		if (jobs++ < MAX_JOBS)
			fprintf(to, "%s%s", jobs > 1 ? ", " : "", id);
	}
	if (jobs > MAX_JOBS)
		fprintf(to, " and %zu more", jobs - MAX_JOBS);
	return hr_text_close(to, &text);
}

/* Reports that the stores have no jobs yet, or which jobs were removed from them. */
static void report_no_jobs(const struct hr_ask *a, const struct hr_catalog *all, const char *where,
			   const char *more)
{
	char *gone = hr_notes_retired(all, NULL);

	if (gone == NULL)
		hr_sink_line(&a->messages,
			     a->filter.one_user ? "note: no job of yours yet in %s%s"
						: "note: no jobs yet in %s%s",
			     where, more);
	/* If no job was requested, the notes of the answer report the removed jobs. */
	else if (a->filter.job != NULL)
		hr_sink_line(&a->messages, "note: %s", gone);
	free(gone);
}

static enum hr_ask_status report_empty(const struct hr_ask *a)
{
	const char *where = a->where != NULL ? a->where : a->stores[0];
	const char *more = a->where == NULL && a->n_stores > 1 ? " and the other stores" : "";
	const char *job = a->filter.job;
	const struct hr_stream *streams;
	struct hr_catalog *all = NULL;
	enum hr_ask_status status = open_catalog(a, NULL, &all);
	char *gone, *jobs = NULL;
	size_t n;

	if (status != HR_ASK_ANSWERED)
		return status;
	n = hr_catalog_streams(all, &streams);
	gone = job != NULL ? hr_notes_retired(all, job) : NULL;
	if (gone != NULL) {
		hr_sink_line(&a->messages, "no data is left in %s%s: %s", where, more, gone);
		status = HR_ASK_NO_STORE;
	} else if (n > 0 && job != NULL) {
		jobs = job_list(streams, n);
		hr_sink_line(&a->messages, "no job %s in %s%s; it contains: %s",
			     hr_near_quoted(job).s, where, more, jobs != NULL ? jobs : "");
		status = HR_ASK_NO_STORE;
	} else if (n == 0) { /* if n > 0, a job has begun since the first opening */
		report_no_jobs(a, all, where, more);
	}
	free(gone);
	free(jobs);
	hr_catalog_free(all);
	return status;
}

static void recover_all(const struct hr_ask *a)
{
	for (size_t i = 0; i < a->n_stores; i++) {
		char *text = NULL;
		int err = a->recover(a->stores[i], &text);

		report_recovered(a, a->stores[i], text, err);
		free(text);
	}
}

static enum hr_ask_status open_query(struct hr_asking *s)
{
	const struct hr_ask *a = s->a;
	struct hr_query_options o = {.memory_bytes = a->memory_bytes,
				     .threads = a->threads,
				     .spill = a->spill,
				     .spill_bytes = a->spill_bytes,
				     .parquet = a->format == HR_FORMAT_PARQUET ? a->parquet : NULL,
				     .now_ns = a->now_ns,
				     .silent_ns = a->silent_ns};
	char *error = NULL;
	int err = hr_query_new(s->catalog, &o, &s->q, &error);

	if (err == 0)
		return HR_ASK_ANSWERED;
	hr_sink_line(&a->messages, "%s", error != NULL ? error : strerrordesc_np(-err));
	free(error);
	return err == -ENOENT || err == -ELIBACC ? HR_ASK_NO_DUCKDB : HR_ASK_FAILED;
}

enum hr_ask_status hr_ask_open(const struct hr_ask *a, struct hr_asking **ret)
{
	struct hr_asking *s = calloc(1, sizeof(*s));
	const struct hr_stream *streams;
	enum hr_ask_status status;

	*ret = NULL;
	if (s == NULL)
		return HR_ASK_FAILED;
	s->a = a;
	status = open_catalog(a, a->filter.job, &s->catalog);
	if (status == HR_ASK_ANSWERED && a->recover != NULL && hr_catalog_journals(s->catalog)) {
		recover_all(a);
		hr_catalog_free(s->catalog);
		s->catalog = NULL;
		status = open_catalog(a, a->filter.job, &s->catalog);
	}
	if (status == HR_ASK_ANSWERED && hr_catalog_streams(s->catalog, &streams) == 0)
		status = report_empty(a);
	if (status == HR_ASK_ANSWERED)
		status = open_query(s);
	if (status != HR_ASK_ANSWERED) {
		hr_asking_close(s);
		return status;
	}
	*ret = s;
	return HR_ASK_ANSWERED;
}

/* ---- answering ---- */

static void send_note(void *self, const char *text)
{
	const struct hr_asking *s = self;

	hr_sink_line(&s->a->messages, "note: %s", text);
}

static enum hr_ask_status ask_failed(const struct hr_asking *s, int err, char *error)
{
	if (err == -EPIPE) { /* the reader of the answer has closed the pipe */
		free(error);
		return HR_ASK_ANSWERED;
	}
	if (error != NULL)
		hr_sink_line(&s->a->messages, "%s", error);
	else
		hr_sink_line(&s->a->messages, "cannot write the answer: %s", strerrordesc_np(-err));
	free(error);
	return err == -EINTR ? HR_ASK_INTERRUPTED : HR_ASK_FAILED;
}

static void print_note(void *self, const char *text)
{
	fprintf(self, "%s\n", text);
}

/* Returns the notes about missing data as lines (malloc'ed), or NULL. */
static char *note_text(struct hr_asking *s)
{
	char *notes = NULL;
	size_t bytes;
	FILE *to = open_memstream(&notes, &bytes);
	const struct hr_sink sink = {print_note, to};

	if (to == NULL)
		return NULL;
	hr_query_notes(s->q, MAX_NOTES, &sink);
	return hr_text_close(to, &notes);
}

static enum hr_ask_status run_question(struct hr_asking *s, const struct hr_query_sink *sink)
{
	const struct hr_question *question = s->a->question;
	char *error = NULL;
	int err = hr_query_run(s->q, question->named.sql, question->args.list, question->args.n,
			       sink, &error);

	return err < 0 ? ask_failed(s, err, error) : HR_ASK_ANSWERED;
}

static enum hr_ask_status answer_arrow(struct hr_asking *s, FILE *to)
{
	enum hr_ask_status status;
	struct hr_arrow *arrow = NULL;
	struct hr_query_sink sink;
	char *notes = note_text(s);
	int err = notes != NULL ? hr_arrow_new(to, notes, &arrow) : -ENOMEM;

	free(notes);
	if (err < 0)
		return ask_failed(s, err, NULL);
	sink = hr_arrow_sink(arrow);
	status = run_question(s, &sink);
	s->rows = hr_arrow_rows(arrow);
	hr_arrow_free(arrow);
	return status;
}

static enum hr_ask_status answer_parquet(struct hr_asking *s)
{
	const struct hr_question *question = s->a->question;
	char *notes = note_text(s), *error = NULL;
	int err = notes != NULL ? 0 : -ENOMEM;

	if (err == 0)
		err = hr_query_parquet(s->q, question->named.sql, question->args.list,
				       question->args.n, notes, &error);
	free(notes);
	return err == 0 ? HR_ASK_ANSWERED : ask_failed(s, err, error);
}

/* Whether the answer is the formatted table of a named query. */
static bool is_shown(const struct hr_ask *a)
{
	return a->format == HR_FORMAT_TEXT && hr_named_find(a->question->named.name) != NULL &&
	       hr_shown_has(&a->question->named);
}

static enum hr_ask_status answer_shown(struct hr_asking *s, FILE *to)
{
	char *error = NULL;
	int err = hr_shown_answer(s->q, &s->a->question->args, &s->a->style, to, &s->rows, &error);

	return err == 0 ? HR_ASK_ANSWERED : ask_failed(s, err, error);
}

static enum hr_ask_status answer_text(struct hr_asking *s, FILE *to)
{
	static const enum hr_output_format formats[] = {
	    [HR_FORMAT_TEXT] = HR_OUTPUT_TABLE,
	    [HR_FORMAT_LIST] = HR_OUTPUT_LIST,
	    [HR_FORMAT_JSON] = HR_OUTPUT_JSON,
	    [HR_FORMAT_CSV] = HR_OUTPUT_CSV,
	};
	bool lines = s->a->question->args.text && s->a->format == HR_FORMAT_TEXT;
	enum hr_output_format format = lines ? HR_OUTPUT_TEXT : formats[s->a->format];
	enum hr_ask_status status;
	struct hr_query_sink sink;
	struct hr_output *out;
	int err = hr_output_new(format, to, s->a->style.width, NULL, &out);

	if (err < 0)
		return ask_failed(s, err, NULL);
	sink = hr_output_sink(out);
	status = run_question(s, &sink);
	s->rows = hr_output_rows(out);
	hr_output_free(out);
	return status;
}

static void send_notes(struct hr_asking *s)
{
	const struct hr_sink notes = {send_note, s};
	const struct hr_named_args *args = &s->a->question->args;

	if (s->rows == 0 && s->a->format != HR_FORMAT_PARQUET && args->n > 0)
		hr_named_absent(s->q, args, &notes);
	hr_named_notes(s->q, args, &notes);
	hr_query_notes(s->q, MAX_NOTES, &notes);
}

enum hr_ask_status hr_asking_answer(struct hr_asking *s, FILE *to)
{
	enum hr_ask_status status;

	if (s->a->format == HR_FORMAT_PARQUET)
		status = answer_parquet(s);
	else if (s->a->format == HR_FORMAT_ARROW)
		status = answer_arrow(s, to);
	else if (is_shown(s->a))
		status = answer_shown(s, to);
	else
		status = answer_text(s, to);
	if (status == HR_ASK_ANSWERED && !atomic_load(&s->interrupted))
		send_notes(s);
	return status;
}

void hr_asking_interrupt(struct hr_asking *s)
{
	atomic_store(&s->interrupted, true);
	hr_query_interrupt(s->q);
}

void hr_asking_scan(struct hr_asking *s, struct hr_query_scan *ret)
{
	uint64_t total = atomic_load(&s->total);

	if (total > 0)
		*ret =
		    (struct hr_query_scan){.batches_read = atomic_load(&s->done), .batches = total};
	else
		hr_query_scan(s->q, ret);
}

uint64_t hr_asking_rows(const struct hr_asking *s)
{
	return s->rows;
}

void hr_asking_close(struct hr_asking *s)
{
	if (s == NULL)
		return;
	hr_query_free(s->q);
	hr_catalog_free(s->catalog);
	free(s);
}

const struct hr_catalog *hr_asking_catalog(const struct hr_asking *s)
{
	return s->catalog;
}

struct hr_query *hr_asking_query(struct hr_asking *s)
{
	return s->q;
}

const struct hr_sink *hr_asking_messages(const struct hr_asking *s)
{
	return &s->a->messages;
}

const char *hr_asking_spill(const struct hr_asking *s)
{
	return s->a->spill;
}

bool hr_asking_advance(struct hr_asking *s, uint64_t done, uint64_t total)
{
	atomic_store(&s->done, done);
	atomic_store(&s->total, total);
	return !atomic_load(&s->interrupted);
}

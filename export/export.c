/* SPDX-License-Identifier: Apache-2.0 */
#include "export/export.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "export/text_out.h"
#include "query/notes.h"
#include "common/array.h"
#include "common/near.h"
#include "common/text.h"

#define NOTES_MAX   100
#define WRITE_BYTES (1u << 20)

/* ---- formats ---- */

static const struct export_format {
	const char *name, *suffix, *reader;
	int (*write)(struct hr_export *x, FILE *to);
} formats[] = {
#define HR_EXPORT(id, name, suffix, reader, write) [HR_EXPORT_##id] = {name, suffix, reader, write},
#include "export/formats.def"
#undef HR_EXPORT
};

const char *hr_export_name(enum hr_export_format format)
{
	return formats[format].name;
}

const char *hr_export_suffix(enum hr_export_format format)
{
	return formats[format].suffix;
}

const char *hr_export_reader(enum hr_export_format format)
{
	return formats[format].reader;
}

char *hr_export_rank_name(enum hr_export_format format, const char *run, const char *rank)
{
	char *name;
	int n = format == HR_EXPORT_NSYS
		    ? asprintf(&name, "%s.r1.mpi%s%s", run, rank, hr_export_suffix(format))
		    : asprintf(&name, "rank%s%s", rank, hr_export_suffix(format));

	return n > 0 ? name : NULL;
}

bool hr_export_format(const char *name, enum hr_export_format *ret)
{
	for (unsigned i = 0; i < HR_EXPORT_FORMATS; i++) {
		if (strcmp(name, formats[i].name) == 0) {
			*ret = i;
			return true;
		}
	}
	return false;
}

/* ---- options ---- */

struct hr_export_options hr_export_all(enum hr_export_format format)
{
	return (struct hr_export_options){.format = format,
					  .rank = -1,
					  .scope = -1,
					  .from_ns = INT64_MIN,
					  .to_ns = INT64_MAX,
					  .first_step = -1,
					  .last_step = -1,
					  .max_bytes = UINT64_MAX};
}

enum { SET_NODE, SET_RANK, SET_SCOPE, SET_FROM, SET_TO_TIME, SET_STEP, SET_MAX_SIZE, SET_PLAIN };

static bool parse_seconds(const char *text, int64_t *ret_ns)
{
	char *end;
	double s = strtod(text, &end);

	if (end == text || *end != '\0' || !(fabs(s) < 1e9))
		return false;
	*ret_ns = llround(s * 1e9);
	return true;
}

/* Reads "N" or "N-M". */
static bool parse_steps(const char *text, int64_t *ret_first, int64_t *ret_last)
{
	const char *dash = strchr(text, '-');
	char first[24];
	uint64_t a, b;

	snprintf(first, sizeof(first), "%.*s", (int)(dash != NULL ? dash - text : 23), text);
	if (hr_text_parse_uint(first, INT64_MAX, &a) < 0 ||
	    hr_text_parse_uint(dash != NULL ? dash + 1 : first, INT64_MAX, &b) < 0 || b < a)
		return false;
	*ret_first = (int64_t)a;
	*ret_last = (int64_t)b;
	return true;
}

static const struct {
	const char *name, *expected;
} settings[] = {
    [SET_NODE] = {"node", "the name of a node"},
    [SET_RANK] = {"rank", "a rank such as 3"},
    [SET_SCOPE] = {"scope", "data or runtime"},
    [SET_FROM] = {"from", "seconds since the job began, or -N for its last N seconds"},
    [SET_TO_TIME] = {"to_time", "seconds since the job began, or -N to skip its last N seconds"},
    [SET_STEP] = {"step", "a step such as 7, or steps such as 7-9"},
    [SET_MAX_SIZE] = {"max_size", "a size such as 200M, or 0 for no limit"},
    [SET_PLAIN] = {"plain", "1"},
};

/* Returns false if the value is wrong. */
static bool set_value(struct hr_export_options *o, size_t setting, const char *value)
{
	uint64_t rank;

	switch (setting) {
	case SET_NODE:
		o->node = value;
		return value[0] != '\0';
	case SET_RANK:
		if (hr_text_parse_uint(value, INT32_MAX, &rank) < 0)
			return false;
		o->rank = (int64_t)rank;
		return true;
	case SET_SCOPE:
		o->scope = strcmp(value, "runtime") == 0;
		return o->scope == 1 || strcmp(value, "data") == 0;
	case SET_FROM:
		return parse_seconds(value, &o->from_ns);
	case SET_TO_TIME:
		return parse_seconds(value, &o->to_ns);
	case SET_STEP:
		return parse_steps(value, &o->first_step, &o->last_step);
	case SET_MAX_SIZE:
		return hr_text_parse_size(value, &o->max_bytes) == 0;
	default:
		o->plain = strcmp(value, "1") == 0;
		return o->plain;
	}
}

/* Reports a wrong value under the name of the command line's option: max_size is --max-size. */
static bool wrong_value(const char *name, const char *expected, const char *value,
			const struct hr_sink *messages)
{
	size_t n = strcspn(name, "_");

	hr_sink_line(messages, "--%.*s%s%s must be %s, not %s", (int)n, name,
		     name[n] != '\0' ? "-" : "", name[n] != '\0' ? name + n + 1 : "", expected,
		     hr_near_quoted(value).s);
	return false;
}

static bool set_word(struct hr_export_options *o, const char *word, const struct hr_sink *messages)
{
	size_t n = strcspn(word, "=");

	for (size_t i = 0; i < sizeof(settings) / sizeof(settings[0]); i++) {
		if (strncmp(settings[i].name, word, n) != 0 || settings[i].name[n] != '\0' ||
		    word[n] == '\0')
			continue;
		if (set_value(o, i, word + n + 1))
			return true;
		return wrong_value(settings[i].name, settings[i].expected, word + n + 1, messages);
	}
	hr_sink_line(messages, "an export has no option %s", hr_near_quoted(word).s);
	return false;
}

bool hr_export_parse(struct hr_export_options *o, char *const *words, size_t n_words,
		     const struct hr_sink *messages)
{
	for (size_t i = 0; i < n_words; i++)
		if (!set_word(o, words[i], messages))
			return false;
	/* Both times are relative to the begin of the job, or both to its end. */
	if ((o->from_ns < 0) == (o->to_ns < 0) && o->from_ns > o->to_ns) {
		hr_sink_line(messages, "--from must be before --to-time: exchange their values");
		return false;
	}
	return true;
}

/* ---- one export ---- */

int hr_export_advance(struct hr_export *x, uint64_t more)
{
	x->done += more;
	return hr_asking_advance(x->asking, x->done, x->total) ? 0 : -EINTR;
}

struct event_writer {
	struct hr_export *x;
	hr_walk_visit *batch;
	void *self;
};

static int write_batch(void *self, const struct hr_walk_stream *ws, const struct hr_walk_batch *b)
{
	const struct event_writer *w = self;
	int r = w->batch(w->self, ws, b);

	w->x->operations += b->n_rows;
	return r == 0 ? hr_export_advance(w->x, b->n_rows) : r;
}

int hr_export_events(struct hr_export *x, const struct hr_walk_stream *ws, hr_walk_visit *batch,
		     void *self)
{
	struct event_writer w = {x, batch, self};

	return hr_walk_events(ws, HR_COL_ALL, write_batch, &w, &x->damaged);
}

char *hr_export_damage(const struct hr_export *x)
{
	uint64_t n = x->damaged + x->walk->damaged;
	char *text;

	if (n == 0 || asprintf(&text,
			       "frames that could not be read: %s; their operations or regions are "
			       "left out",
			       hr_text_count(n).s) < 0)
		return NULL;
	return text;
}

static void keep_note(void *self, const char *text)
{
	struct hr_export *x = self;
	char *copy = strdup(text);

	if (copy != NULL && hr_array_reserve(x->notes, x->n_notes, x->notes_room))
		x->notes[x->n_notes++] = copy;
	else
		free(copy);
}

static int keep_times(void *self, duckdb_data_chunk chunk)
{
	struct hr_export *x = self;

	if (hr_duckdb.data_chunk_get_size(chunk) == 0)
		return 0;
	x->start_ns =
	    *(int64_t *)hr_duckdb.vector_get_data(hr_duckdb.data_chunk_get_vector(chunk, 0));
	x->end_ns =
	    *(int64_t *)hr_duckdb.vector_get_data(hr_duckdb.data_chunk_get_vector(chunk, 1));
	return 0;
}

/* Returns when the last recorded operation ended. 0: there is none. */
static int64_t last_operation_ns(const struct hr_catalog *c)
{
	const struct hr_stream *streams;
	size_t n = hr_catalog_streams(c, &streams);
	int64_t last = 0;

	for (size_t i = 0; i < n; i++) {
		for (uint32_t b = 0; b < streams[i].n_batches; b++) {
			int64_t ns = hr_stream_real_ns(&streams[i], streams[i].batches[b].last_ns);

			last = ns > last ? ns : last;
		}
	}
	return last;
}

/* Finds begin and end of the job. A job without an end ends with its last recorded operation. */
static int find_times(struct hr_export *x, const struct hr_catalog *c, char **ret_error)
{
	static const char sql[] =
	    "SELECT coalesce(min(start_ns), 0)::BIGINT, CASE WHEN count(*) = count(end_ns) THEN "
	    "coalesce(max(end_ns), 0) ELSE 0 END::BIGINT FROM jobs";
	const struct hr_query_sink sink = {.chunk = keep_times, .self = x};
	int r = hr_query_run(x->query, sql, NULL, 0, &sink, ret_error);

	if (r == 0 && x->end_ns == 0)
		x->end_ns = last_operation_ns(c);
	return r;
}

/* Returns the wall-clock time of an option, which is relative to the begin or end of the job. */
static int64_t wall_ns(const struct hr_export *x, int64_t ns)
{
	int64_t at;

	if (ns == INT64_MIN || ns == INT64_MAX ||
	    __builtin_add_overflow(ns < 0 ? x->end_ns : x->start_ns, ns, &at))
		return ns;
	return at;
}

static bool several_jobs(const struct hr_catalog *c)
{
	const struct hr_stream *streams;
	size_t n = hr_catalog_streams(c, &streams);

	return n > 0 && strcmp(streams[0].job, streams[n - 1].job) != 0;
}

/* Whether a selected operation or region may exist. */
static bool has_content(const struct hr_export *x)
{
	for (size_t i = 0; i < x->walk->n_streams; i++)
		if (x->walk->streams[i].n_regions > 0 || hr_walk_has_events(&x->walk->streams[i]))
			return true;
	return false;
}

/* Fails if the selected time is outside of the job. Returns 0 or -ENOENT, and *ret_error. */
static int check_time(const struct hr_export *x, char **ret_error)
{
	const struct hr_export_options *o = x->options;
	int64_t from = wall_ns(x, o->from_ns), to = wall_ns(x, o->to_ns);
	bool late = o->from_ns != INT64_MIN && from > x->end_ns;
	bool early = o->to_ns != INT64_MAX && to < x->start_ns;
	int64_t lasted = x->end_ns - x->start_ns;
	char what[64] = "between --from and --to-time";

	if (x->end_ns == 0 || (from <= to && !late && !early) || has_content(x))
		return 0;
	if (late)
		snprintf(what, sizeof(what), "at or after --from %g", (double)o->from_ns / 1e9);
	else if (early)
		snprintf(what, sizeof(what), "at or before --to-time %g", (double)o->to_ns / 1e9);
	return hr_text_fail(-ENOENT, ret_error,
			    "nothing to export: the job lasted %s, and nothing is %s",
			    hr_text_duration(lasted > 0 ? (uint64_t)lasted : 0).s, what);
}

static const char *no_process(const struct hr_export *x)
{
	const struct hr_export_options *o = x->options;

	if (o->node == NULL && o->rank < 0 && o->first_step < 0)
		return "nothing to export: the recording has no processes";
	return "nothing to export: no process of the job matches the options\n"
	       "hint: `headrace query STORE ranks` lists the ranks; `nodes` and `steps` list the "
	       "others";
}

static enum hr_ask_status export_failed(const struct hr_export *x, int err, char *error,
					const struct hr_sink *messages)
{
	if (err == -EPIPE) { /* the reader of the output has closed the pipe */
		free(error);
		return HR_ASK_ANSWERED;
	}
	if (error != NULL)
		hr_sink_line(messages, "%s", error);
	else if (err == -EINTR)
		hr_sink_line(messages, "interrupted");
	else if (err == -ENOENT)
		hr_sink_line(messages, "%s", no_process(x));
	else
		hr_sink_line(messages, "cannot write the export as %s: %s",
			     hr_export_name(x->options->format), strerrordesc_np(-err));
	free(error);
	return err == -EINTR ? HR_ASK_INTERRUPTED : HR_ASK_FAILED;
}

static int make_walk(struct hr_export *x, const struct hr_catalog *c)
{
	const struct hr_export_options *o = x->options;
	struct hr_walk_options walk = {.node = o->node,
				       .rank = o->rank,
				       .scope = o->scope,
				       .from_ns = wall_ns(x, o->from_ns),
				       .to_ns = wall_ns(x, o->to_ns),
				       .first_step = o->first_step,
				       .last_step = o->last_step};
	int r = hr_walk_new(c, &walk, &x->walk);

	for (size_t i = 0; r == 0 && i < x->walk->n_streams; i++)
		for (uint32_t b = 0; b < x->walk->streams[i].s->n_batches; b++)
			x->total += x->walk->streams[i].s->batches[b].count;
	return r;
}

static int export_write(struct hr_export *x, FILE *to)
{
	int err;

	setvbuf(to, NULL, _IOFBF, WRITE_BYTES);
	err = formats[x->options->format].write(x, to);
	return err == 0 && fflush(to) != 0 ? -errno : err;
}

/* Reports what the export lacks. */
static void report_notes(const struct hr_export *x, const struct hr_sink *messages)
{
	char *damage = hr_export_damage(x);

	for (size_t i = 0; i < x->n_notes; i++)
		hr_sink_line(messages, "note: %s", x->notes[i]);
	if (damage != NULL)
		hr_sink_line(messages, "note: %s", damage);
	free(damage);
}

static void add_counts(const struct hr_export *x, struct hr_export_counts *c)
{
	c->operations += x->operations - x->operations_left_out;
	c->regions -= x->regions_left_out;
	for (size_t i = 0; i < x->walk->n_streams; i++)
		c->regions += x->walk->streams[i].n_regions;
}

enum hr_ask_status hr_export_answer(struct hr_asking *asking, const struct hr_export_options *o,
				    FILE *to)
{
	const struct hr_sink *messages = hr_asking_messages(asking);
	const struct hr_catalog *c = hr_asking_catalog(asking);
	struct hr_export x = {.options = o, .asking = asking, .query = hr_asking_query(asking)};
	const struct hr_sink keep = {keep_note, &x};
	char *error = NULL;
	int err = 0;

	if (several_jobs(c))
		err = hr_text_fail(-EINVAL, &error, "an export has one job: use --job");
	if (err == 0)
		err = find_times(&x, c, &error);
	if (err == 0)
		err = make_walk(&x, c);
	if (err == 0)
		err = check_time(&x, &error);
	if (err == 0) {
		hr_query_notes(x.query, NOTES_MAX, &keep);
		err = export_write(&x, to);
		error = x.error;
	}
	if (err == 0)
		report_notes(&x, messages);
	if (err == 0 && o->counts != NULL)
		add_counts(&x, o->counts);
	for (size_t i = 0; i < x.n_notes; i++)
		free(x.notes[i]);
	free(x.notes);
	hr_walk_free(x.walk);
	return err == 0 ? HR_ASK_ANSWERED : export_failed(&x, err, error, messages);
}

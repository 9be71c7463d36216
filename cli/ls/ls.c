/* SPDX-License-Identifier: Apache-2.0 */
/* headrace ls - lists the stores of folders, and the caller's jobs that run on this node. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "cli/cli.h"
#include "cli/commands.h"
#include "cli/service/runs.h"
#include "cli/stores.h"
#include "cli/summary/summary_parts.h"
#include "cli/table.h"
#include "query/ask.h"
#include "query/query.h"
#include "common/array.h"
#include "common/now.h"
#include "common/text.h"

/* Limit of the events that are read for the column WAITED. Reading them takes a second. */
#define EVENTS_MAX 10000000u
#define SECOND_NS  UINT64_C(1000000000)

const struct hr_option hr_ls_option_table[] = {
    HR_OPTIONS_FORMAT("text json"),
    HR_OPTIONS_END,
};

/*
 * A row: a store and its last job, or a job that runs into a collector. Strings are malloc'ed, and
 * contain unescaped names; NULL: unknown.
 */
struct ls_row {
	char *store; /* path of the store, or addresses of collectors */
	char *job;   /* id of the last job in the store */
	char *state; /* state of the last run of this job, as in struct hr_summary */
	/* program of the first rank, else of the first process: "train.py" */
	char *program;
	size_t jobs;		    /* number of jobs in the store */
	uint64_t start_ns, span_ns; /* wall clock; 0: unknown */
	uint64_t bytes;		    /* size of the store */
	/* share of the time of training loops that they waited; below 0: unknown */
	double waited;
};

struct ls {
	struct hr_found_stores stores;
	struct ls_row *rows;
	size_t n, room;
	bool json, folders; /* --json; whether folders are given */
};

/* ---- the last job of a store ----------------------------------------------------------------- */

static uint64_t wall_ns(const struct hr_stream *stream, uint64_t boot_ns)
{
	return boot_ns != 0 ? (uint64_t)hr_stream_real_ns(stream, boot_ns) : 0;
}

struct ls_part {
	struct ls_row *row;
	const struct hr_stream *stream;
	struct hr_run_part part;
};

static int see_frame(void *context, Headrace__Frame *frame)
{
	struct ls_part *p = context;

	if (frame->body_case == HEADRACE__FRAME__BODY_JOB) {
		struct hr_run_part job = {.start_ns = wall_ns(p->stream, frame->job->start_ns),
					  .end_ns = wall_ns(p->stream, frame->job->end_ns)};

		hr_run_part_join(&p->part, &job);
		if (p->row->program == NULL && hr_text_given(frame->job->name))
			p->row->program = strdup(frame->job->name);
	} else {
		p->part.killed = strcmp(frame->stream_end->state, "killed") == 0;
		p->part.failed = strcmp(frame->stream_end->state, "failed") == 0;
	}
	return 0;
}

/* Returns the times of a stream. If the program is unknown, the name of the job replaces it. */
static struct hr_run_part stream_part(struct ls_row *row, const struct hr_stream *stream)
{
	struct ls_part p = {row,
			    stream,
			    {.running = !stream->ended && stream->live,
			     .unfinished = !stream->ended && !stream->live}};

	for (uint32_t i = 0; i < stream->n_processes; i++) {
		hr_run_part_see(&p.part, wall_ns(stream, stream->processes[i].msg->start_ns));
		hr_run_part_see(&p.part, wall_ns(stream, stream->processes[i].msg->end_ns));
	}
	for (uint32_t i = 0; i < stream->n_batches; i++)
		hr_run_part_see(&p.part, wall_ns(stream, stream->batches[i].last_ns));
	hr_stream_each_frame(stream, HR_FRAME_BIT(JOB) | HR_FRAME_BIT(STREAM_END), see_frame, &p,
			     NULL);
	return p.part;
}

static void take_runs(struct ls_row *row, const struct hr_stream *streams, size_t n)
{
	struct hr_summary s = {0};
	struct hr_runs runs = {0};
	struct hr_run_part job, part;

	for (size_t i = 0; i < n; i++) {
		part = stream_part(row, &streams[i]);
		hr_runs_add(&runs, &part);
	}
	hr_runs_take(&runs, &s, &job);
	row->state = s.run_state;
	row->span_ns = s.run_span_ns;
	row->start_ns = hr_run_part_start(&job);
	if (s.runs > 1)
		row->start_ns = hr_run_part_end(&job) - s.run_span_ns;
	if (job.running && row->start_ns != 0)
		row->span_ns = hr_now_ns(CLOCK_REALTIME) - row->start_ns;
	free(s.state);
	hr_runs_done(&runs);
}

/* Returns "train.py" for "/usr/bin/python3 /home/x/train.py --epochs 3" (malloc'ed). */
static char *program_of(const Headrace__Process *p)
{
	const ProtobufCBinaryData *line = p->cmdline.len > 0 ? &p->cmdline : &p->exe;
	char *text = strndup((const char *)line->data, line->len), *rest = text, *word, *program;

	word = text != NULL ? strsep(&rest, " ") : NULL;
	if (word == NULL)
		return NULL;
	program = strrchr(word, '/') != NULL ? strrchr(word, '/') + 1 : word;
	if (strncmp(program, "python", 6) == 0 && rest != NULL && rest[0] != '-' &&
	    rest[0] != '\0') {
		word = strsep(&rest, " ");
		program = strrchr(word, '/') != NULL ? strrchr(word, '/') + 1 : word;
	}
	program = strdup(program);
	free(text);
	return program;
}

/* Sets the program of the first rank, because the first process may be a launcher. */
static void take_program(struct ls_row *row, const struct hr_stream *streams, size_t n)
{
	const struct hr_process *found = NULL;

	for (size_t i = 0; i < n; i++) {
		for (uint32_t k = 0; k < streams[i].n_processes; k++) {
			const struct hr_process *p = &streams[i].processes[k];

			if (found == NULL || (found->rank < 0 && p->rank >= 0))
				found = p;
		}
	}
	if (found != NULL)
		row->program = program_of(found->msg);
}

static bool has_regions(const struct hr_stream *stream)
{
	for (uint32_t i = 0; i < stream->n_frames; i++)
		if (stream->frames[i].kind == HEADRACE__FRAME__BODY_REGIONS)
			return true;
	return false;
}

static double loops_waited(const struct hr_diagnosis *d)
{
	struct hr_summary_loop all = {0};

	for (size_t i = 0; i < d->lives.n; i++) {
		struct hr_summary_loop loop = {0};

		hr_loop_add_life(&loop, &d->sums[i]);
		if (loop.wait_ns == 0)
			continue;
		all.wait_ns += loop.wait_ns;
		all.loop_ns += loop.loop_ns;
	}
	return all.loop_ns > 0 ? (double)all.wait_ns / (double)all.loop_ns : -1;
}

static void take_waited(struct ls_row *row, const struct hr_catalog *catalog, uint64_t *events_left)
{
	const struct hr_stream *streams;
	size_t n = hr_catalog_streams(catalog, &streams);
	const struct hr_diagnosis *d;
	struct hr_query *q;
	uint64_t events = 0;
	bool regions = false;

	for (size_t i = 0; i < n; i++) {
		for (uint32_t k = 0; k < streams[i].n_batches; k++)
			events += streams[i].batches[k].count;
		regions = regions || has_regions(&streams[i]);
	}
	if (!regions || events > *events_left || hr_query_new_without_sql(catalog, &q) < 0)
		return;
	*events_left -= events;
	if (hr_diagnosis_shared(q, &d) == 0)
		row->waited = loops_waited(d);
	hr_query_free(q);
}

/*
 * Reads the last job of a store. Computes `waited` if the job has at most *events_left events, and
 * subtracts the number of its events from *events_left. An unreadable store gets the state
 * "unreadable".
 */
static void row_read(const struct hr_found_store *store, uint64_t *events_left, struct ls_row *ret)
{
	const struct hr_store_outline *outline = &store->outline;
	const struct hr_catalog_filter filter = {.job =
						     outline->jobs > 0 ? outline->last_job : NULL};
	const char *const path = store->path;
	const struct hr_stream *streams;
	struct hr_catalog *catalog = NULL;
	size_t n = 0;

	*ret = (struct ls_row){.store = strdup(path),
			       .job = strdup(outline->last_job),
			       .jobs = outline->jobs,
			       .bytes = outline->bytes,
			       .start_ns = outline->changed_ns,
			       .waited = -1};
	if (hr_catalog_open(&path, 1, &filter, &catalog, NULL) < 0)
		ret->state = strdup("unreadable");
	else
		n = hr_catalog_streams(catalog, &streams);
	if (n > 0) {
		take_program(ret, streams, n);
		take_waited(ret, catalog, events_left);
		take_runs(ret, streams, n);
	} else if (catalog != NULL) {
		ret->state = strdup("empty");
	}
	hr_catalog_free(catalog);
}

static void row_done(struct ls_row *row)
{
	free(row->store);
	free(row->job);
	free(row->state);
	free(row->program);
}

/* ---- running jobs ---------------------------------------------------------------------------- */

static bool is_listed(const struct ls *ls, const char *store)
{
	struct stat wanted, st;

	if (stat(store, &wanted) < 0)
		return true; /* a removed store is not listed again */
	for (size_t i = 0; i < ls->stores.n; i++)
		if (stat(ls->stores.list[i].path, &st) == 0 && st.st_ino == wanted.st_ino &&
		    st.st_dev == wanted.st_dev)
			return true;
	return false;
}

/* Adds a run that sends to a collector. It has no store, so headraced describes it. */
static void add_sending(struct ls *ls, const Headrace__JobStatus *j)
{
	for (size_t i = 0; i < ls->n; i++)
		if (strcmp(ls->rows[i].job, j->id) == 0)
			return;
	if (!hr_array_reserve(ls->rows, ls->n, ls->room))
		return;
	ls->rows[ls->n++] =
	    (struct ls_row){.store = strdup(j->collectors),
			    .job = strdup(j->id),
			    .state = strdup(j->state),
			    .program = strdup(j->name),
			    .jobs = 1,
			    .bytes = j->stored_bytes,
			    .waited = j->has_input_wait ? (double)j->input_wait / 1000 : -1};
}

static void add_run(void *arg, const char *socket, Headrace__Control *m)
{
	const Headrace__JobStatus *j = m->job_status;
	struct ls *ls = arg;

	(void)socket;
	if (j->collectors[0] != '\0')
		add_sending(ls, j);
	else if (!is_listed(ls, j->store))
		hr_stores_add(j->store, true, &ls->stores);
}

static void print_json(const struct ls *ls)
{
	struct hr_json j;

	hr_json_init(&j, stdout);
	hr_json_document(&j, "headrace-ls/1");
	for (size_t i = 0; hr_json_row(&j, "stores", i, ls->n); i++) {
		const struct ls_row *row = &ls->rows[i];

		hr_json_path(&j, "store", row->store, strlen(row->store));
		hr_json_string(&j, "job", hr_text_or_null(row->job));
		hr_json_uint(&j, "jobs", row->jobs);
		hr_json_string(&j, "state", row->state);
		hr_json_string(&j, "program", row->program);
		hr_json_uint(&j, "start_ns", row->start_ns);
		hr_json_double(&j, "seconds", (double)row->span_ns / 1e9);
		hr_json_double(&j, "input_wait", row->waited >= 0 ? row->waited : NAN);
		hr_json_uint(&j, "bytes", row->bytes);
	}
	hr_json_end(&j);
}

/* ---- the table ------------------------------------------------------------------------------- */

enum { WHEN, STORE, JOBS, STATE, TIME, WAITED, SIZE, PROGRAM, COLUMNS };

/* Names of programs are shortened first, because users copy names of stores to other commands. */
static const struct hr_table_column columns[COLUMNS] = {
    [WHEN] = {.title = "WHEN"},
    [STORE] = {.title = "STORE", .least = 20},
    [JOBS] = {.title = "JOBS", .number = true},
    [STATE] = {.title = "STATE"},
    [TIME] = {.title = "TIME", .number = true},
    [WAITED] = {.title = "WAITED", .number = true},
    [SIZE] = {.title = "SIZE", .number = true},
    [PROGRAM] = {.title = "PROGRAM", .least = 10},
};

/* Sets "21:14" for today, else "Nov 25", or "2025" if it is not this year. */
static void set_when(struct hr_table *t, size_t row, uint64_t real_ns)
{
	time_t at = (time_t)(real_ns / SECOND_NS),
	       now = (time_t)(hr_now_ns(CLOCK_REALTIME) / SECOND_NS);
	struct tm then, today;
	const char *format = "%b %e";
	char text[32];

	if (real_ns == 0 || localtime_r(&at, &then) == NULL || localtime_r(&now, &today) == NULL)
		return;
	if (then.tm_year != today.tm_year)
		format = "%Y";
	else if (then.tm_yday == today.tm_yday)
		format = "%H:%M";
	if (strftime(text, sizeof(text), format, &then) > 0)
		hr_table_set(t, row, WHEN, "%s", text);
}

static void set_row(struct hr_table *t, size_t i, const struct ls_row *row)
{
	const char *store = row->store != NULL ? row->store : "";

	set_when(t, i, row->start_ns);
	hr_table_name(t, i, STORE, strncmp(store, "./", 2) == 0 ? store + 2 : store, NULL,
		      SIZE_MAX);
	hr_table_name(t, i, STATE, row->state, NULL, SIZE_MAX);
	hr_table_name(t, i, PROGRAM, row->program, NULL, SIZE_MAX);
	if (row->jobs > 1)
		hr_table_set(t, i, JOBS, "%zu", row->jobs);
	if (row->span_ns > 0)
		hr_table_set(t, i, TIME, "%s", hr_text_duration(row->span_ns).s);
	if (row->waited >= 0)
		hr_table_set(t, i, WAITED, "%.0f %%", 100 * row->waited);
	hr_table_set(t, i, SIZE, "%s", hr_text_size(row->bytes).s);
}

static void print_table(const struct ls *ls)
{
	struct hr_sheet sheet = {.out = stdout};
	struct hr_table t;

	if (!hr_table_init(&t, columns, COLUMNS, ls->n))
		return;
	for (size_t i = 0; i < ls->n; i++)
		set_row(&t, i + 1, &ls->rows[i]);
	hr_table_fit(&t, hr_terminal_width(STDOUT_FILENO));
	for (size_t i = 0; i <= ls->n; i++)
		hr_table_print(&t, i, "", &sheet);
	hr_table_done(&t);
}

/* ---- the command ----------------------------------------------------------------------------- */

static int list(struct ls *ls)
{
	uint64_t events_left = EVENTS_MAX;
	bool whole = hr_runs_request_status(add_run, ls);

	if (!whole)
		hr_runs_report_missing();
	hr_stores_sort(&ls->stores);
	for (size_t i = 0; i < ls->stores.n; i++) {
		if (!hr_array_reserve(ls->rows, ls->n, ls->room))
			return EXIT_FAILURE;
		row_read(&ls->stores.list[i], &events_left, &ls->rows[ls->n++]);
	}
	if (ls->json)
		print_json(ls);
	else if (ls->n > 0)
		print_table(ls);
	else if (whole)
		hr_report("no stores, and no running job of yours" HR_HINT
			  "`headrace run -- CMD` records CMD into a store; `headrace ls FOLDER` "
			  "lists another folder");
	return EXIT_SUCCESS;
}

static int add_folder(struct ls *ls, const char *folder)
{
	int r = hr_stores_find(folder, true, &ls->stores);

	if (r == 0)
		return 0;
	hr_report("cannot list %s: %s", hr_near_quoted(folder).s, strerrordesc_np(-r));
	return HR_ASK_NO_STORE;
}

static int take_argument(void *self, int id, const char *value)
{
	struct ls *ls = self;

	if (id == HR_OPTION_FORMAT) {
		ls->json = hr_option_is_json(value);
		return 0;
	}
	ls->folders = true;
	return add_folder(ls, value);
}

int hr_ls_main(int argc, char **argv)
{
	struct ls ls = {0};
	int status;

	if (hr_arguments(argc, argv, hr_ls_option_table, take_argument, &ls, &status)) {
		if (!ls.folders)
			status = add_folder(&ls, ".");
		if (status == EXIT_SUCCESS)
			status = list(&ls);
	}
	for (size_t i = 0; i < ls.n; i++)
		row_done(&ls.rows[i]);
	free(ls.rows);
	hr_stores_done(&ls.stores);
	return status;
}

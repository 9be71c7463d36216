/* SPDX-License-Identifier: Apache-2.0 */
/*
 * headrace query: SQL or a named query over stores; the answer on standard output, what is
 * missing on standard error.
 */
#include "cli/query.h"

#include <errno.h>
#include <ftw.h>
#include <pthread.h>
#include <pwd.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/cli.h"
#include "cli/commands.h"
#include "cli/query_request.h"
#include "collector/query/notes.h"
#include "collector/query/output.h"
#include "common/outfile.h"

#define EXIT_NO_DUCKDB 69 /* EX_UNAVAILABLE */
#define MAX_NOTES      20
#define MAX_JOBS       12 /* that a message names */

int (*hr_query_recover)(const char *store, char **ret_note);

struct question {
	struct hr_request request;
	struct hr_outfile file; /* of -o */
	uint64_t rows;		/* of the answer; not counted for parquet */
};

/* ---- Ctrl-C ---------------------------------------------------------------------------------- */

/*
 * Turns the first SIGINT or SIGTERM into an interrupt of the statement. DuckDB looks for it between
 * vectors, and nobody does while the answer is written to a reader who does not read: the second
 * one ends the process, and leaves nothing behind.
 */
struct watcher {
	pthread_t thread;
	bool started;
	struct hr_query *query;
	const struct hr_outfile *file;
	char *spill; /* the folder that DuckDB spills to, when there is one */
	sigset_t set;
};

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
	(void)st;
	(void)type;
	(void)ftw;
	return remove(path) < 0 && errno != ENOENT ? -1 : 0;
}

static void *watch(void *arg)
{
	struct watcher *w = arg;
	int signal;

	if (sigwait(&w->set, &signal) != 0 || signal == SIGUSR1)
		return NULL;
	hr_query_interrupt(w->query);
	if (sigwait(&w->set, &signal) != 0 || signal == SIGUSR1)
		return NULL;
	nftw(w->spill, remove_one, 4, FTW_DEPTH | FTW_PHYS);
	if (w->file->partial != NULL)
		unlink(w->file->partial);
	_exit(HR_EXIT_SIGNAL + signal);
}

/* Signals must be blocked before DuckDB makes threads, which inherit the mask. */
static void watcher_block(struct watcher *w)
{
	sigemptyset(&w->set);
	sigaddset(&w->set, SIGINT);
	sigaddset(&w->set, SIGTERM);
	sigaddset(&w->set, SIGUSR1);
	pthread_sigmask(SIG_BLOCK, &w->set, NULL);
}

static void watcher_start(struct watcher *w, struct hr_query *q)
{
	w->query = q;
	w->started = pthread_create(&w->thread, NULL, watch, w) == 0;
}

static void watcher_stop(struct watcher *w)
{
	if (!w->started)
		return;
	pthread_kill(w->thread, SIGUSR1);
	pthread_join(w->thread, NULL);
}

/* ---- running --------------------------------------------------------------------------------- */

static unsigned terminal_width(FILE *to)
{
	struct winsize size;

	if (!isatty(fileno(to)) || ioctl(fileno(to), TIOCGWINSZ, &size) < 0)
		return 0;
	return size.ws_col;
}

/* Who may write to a store that we may not: its owner, by name where there is one. */
static void say_owner(const char *store)
{
	struct passwd entry, *found = NULL;
	char names[1024];
	struct stat st;

	if (stat(store, &st) < 0)
		return;
	if (getpwuid_r(st.st_uid, &entry, names, sizeof(names), &found) != 0 || found == NULL)
		snprintf(names, sizeof(names), "%u", (unsigned)st.st_uid);
	hr_say("the answer lacks what that journal holds; `headrace query %s summary`, run once by "
	       "the store's owner (%s), takes it over",
	       store, found != NULL ? found->pw_name : names);
}

/* What became of journals that killed daemons left: `text` has a line for each, or is NULL. */
static void say_recovered(const char *store, char *text, int err)
{
	char *rest = text, *line;

	while ((line = strsep(&rest, "\n")) != NULL)
		if (line[0] != '\0')
			hr_say("%s", line);
	if (err < 0 && text == NULL)
		hr_say("%s: what a killed run left behind could not be recovered: %s", store,
		       strerrordesc_np(-err));
	if (err == -EROFS)
		hr_say("the answer lacks what that journal holds: copy %s to a file system that "
		       "can be written and ask the copy",
		       store);
	else if (err == -EACCES || err == -EPERM)
		say_owner(store);
}

static int open_catalog(const struct hr_request *r, const char *job, struct hr_catalog **ret)
{
	char *error = NULL;
	int err = hr_catalog_open(r->stores, r->n_stores, job, ret, &error);

	if (err == 0)
		return 0;
	if (error != NULL)
		hr_say("%s", error);
	else
		hr_say("%s: cannot be read as a store: %s", r->stores[0], strerrordesc_np(-err));
	free(error);
	return HR_EXIT_NO_STORE;
}

/* "a, b and 3 more": the jobs of streams that stand in their order. malloc'ed, NULL without memory. */
static char *job_list(const struct hr_stream *streams, size_t n)
{
	char *text = NULL;
	size_t bytes, jobs = 0;
	FILE *to = open_memstream(&text, &bytes);

	if (to == NULL)
		return NULL;
	for (size_t i = 0; i < n; i++) {
		if (i > 0 && strcmp(streams[i].job, streams[i - 1].job) == 0)
			continue;
		if (jobs++ < MAX_JOBS)
			fprintf(to, "%s%s", jobs > 1 ? ", " : "", streams[i].job);
	}
	if (jobs > MAX_JOBS)
		fprintf(to, " and %zu more", jobs - MAX_JOBS);
	if (fclose(to) == 0)
		return text;
	free(text);
	return NULL;
}

/* No stream is there: of the job that was asked for, or none at all. */
static int say_empty(const struct hr_request *r)
{
	const char *more = r->n_stores > 1 ? " and the other stores" : "";
	const struct hr_stream *streams;
	struct hr_catalog *all = NULL;
	int status = open_catalog(r, NULL, &all);
	size_t n = status == 0 ? hr_catalog_streams(all, &streams) : 0;
	char *jobs = n > 0 ? job_list(streams, n) : NULL;

	if (status == 0 && n == 0)
		hr_say("note: no job has been recorded into %s%s yet", r->stores[0], more);
	if (status == 0 && n > 0)
		hr_say("no job '%s' in %s%s; there is: %s", r->job, r->stores[0], more,
		       jobs != NULL ? jobs : "");
	free(jobs);
	hr_catalog_free(all);
	return n > 0 ? HR_EXIT_NO_STORE : status;
}

static int open_stores(const struct hr_request *r, struct hr_catalog **ret)
{
	const struct hr_stream *streams;
	char *text = NULL;
	int err, status;

	for (size_t i = 0; hr_query_recover != NULL && i < r->n_stores; i++) {
		err = hr_query_recover(r->stores[i], &text);
		say_recovered(r->stores[i], text, err);
		free(text);
		text = NULL;
	}
	status = open_catalog(r, r->job, ret);
	if (status == 0 && hr_catalog_streams(*ret, &streams) == 0)
		status = say_empty(r);
	return status;
}

static void say_note(const char *text)
{
	hr_say("note: %s", text);
}

static int failed(int err, char *error, const struct hr_output *out)
{
	const char *problem = out != NULL ? hr_output_problem(out) : NULL;

	if (err == -EPIPE) { /* the reader has seen enough */
		free(error);
		return EXIT_SUCCESS;
	}
	if (problem != NULL)
		hr_say("%s", problem);
	else if (error != NULL)
		hr_say("%s", error);
	else
		hr_say("the answer could not be written: %s", strerrordesc_np(-err));
	free(error);
	return err == -EINTR ? HR_EXIT_SIGNAL + SIGINT : EXIT_FAILURE;
}

static int answer_parquet(const struct question *a, struct hr_query *q)
{
	const struct hr_request *r = &a->request;
	char *error = NULL;
	int err = hr_query_parquet(q, r->named.sql, r->args.list, r->args.n, &error);

	if (err == 0)
		err = hr_outfile_end(&a->file, true);
	else
		hr_outfile_end(&a->file, false);
	return err == 0 ? EXIT_SUCCESS : failed(err, error, NULL);
}

static int answer_text(struct question *a, struct hr_query *q, FILE *to)
{
	const struct hr_request *r = &a->request;
	static const enum hr_output_format formats[] = {HR_OUTPUT_TABLE, HR_OUTPUT_JSON,
							HR_OUTPUT_CSV};
	struct hr_query_sink sink;
	struct hr_output *out;
	char *error = NULL;
	int err = hr_output_new(formats[r->format], to, terminal_width(to), &out);

	if (err < 0)
		return failed(err, NULL, NULL);
	sink = hr_output_sink(out);
	err = hr_query_run(q, r->named.sql, r->args.list, r->args.n, &sink, &error);
	a->rows = hr_output_rows(out);
	err = err == 0 ? EXIT_SUCCESS : failed(err, error, out);
	hr_output_free(out);
	return err;
}

/* A file appears under its name when it is whole. */
static int answer_file(struct question *a, struct hr_query *q)
{
	FILE *to = fopen(hr_outfile_name(&a->file), "we");
	int status, err;

	if (to == NULL) {
		hr_say("%s: %s", a->request.output, strerrordesc_np(errno));
		return EXIT_FAILURE;
	}
	status = answer_text(a, q, to);
	if (fclose(to) != 0 && status == EXIT_SUCCESS)
		status = failed(-errno, NULL, NULL);
	err = hr_outfile_end(&a->file, status == EXIT_SUCCESS);
	return err < 0 ? failed(err, NULL, NULL) : status;
}

static int answer(struct question *a, struct hr_query *q)
{
	if (a->request.format == HR_FORMAT_PARQUET)
		return answer_parquet(a, q);
	return a->request.output != NULL ? answer_file(a, q) : answer_text(a, q, stdout);
}

/* What the answer lacks, and why it is empty if it is. */
static void say_notes(const struct question *a, struct hr_query *q)
{
	if (a->rows == 0 && a->request.format != HR_FORMAT_PARQUET && a->request.args.n > 0)
		hr_named_absent(q, &a->request.args, say_note);
	hr_query_notes(q, MAX_NOTES, say_note);
}

static int ask(struct question *a, const struct hr_catalog *catalog)
{
	const struct hr_request *r = &a->request;
	const char *tmp = getenv("TMPDIR");
	struct hr_query_options o = {.memory_bytes = r->memory_bytes, .threads = r->threads};
	struct watcher watcher = {.file = &a->file};
	struct hr_query *q;
	char *error = NULL;
	int status;

	if (asprintf(&watcher.spill, "%s/headrace-query-%d", tmp != NULL ? tmp : "/tmp",
		     (int)getpid()) < 0)
		return EXIT_FAILURE;
	o.spill = watcher.spill;
	o.parquet = r->format == HR_FORMAT_PARQUET ? hr_outfile_name(&a->file) : NULL;
	watcher_block(&watcher);
	status = hr_query_new(catalog, &o, &q, &error);
	if (status < 0) {
		hr_say("%s", error != NULL ? error : strerrordesc_np(-status));
		free(error);
		free(watcher.spill);
		return status == -ENOENT || status == -ELIBACC ? EXIT_NO_DUCKDB : EXIT_FAILURE;
	}
	watcher_start(&watcher, q);
	status = answer(a, q);
	if (status == EXIT_SUCCESS)
		say_notes(a, q);
	watcher_stop(&watcher);
	hr_query_free(q);
	free(watcher.spill);
	return status;
}

static int plan_output(struct question *a)
{
	const struct hr_request *r = &a->request;
	int err = r->output != NULL ? hr_outfile_init(&a->file, r->output) : 0;

	if (err < 0) {
		hr_say("%s: %s", r->output, strerrordesc_np(-err));
		return EXIT_FAILURE;
	}
	if (r->output != NULL && r->format == HR_FORMAT_PARQUET && a->file.partial == NULL) {
		hr_say("%s is no regular file: parquet cannot be written there", r->output);
		return HR_EXIT_USAGE;
	}
	return 0;
}

int hr_query_main(int argc, char **argv)
{
	struct question a = {.rows = 0};
	struct hr_catalog *catalog = NULL;
	int status;

	signal(SIGPIPE, SIG_IGN);
	if (hr_request_parse(argc, argv, &a.request, &status) == 0) {
		status = plan_output(&a);
		if (status == 0)
			status = open_stores(&a.request, &catalog);
		if (status == 0)
			status = ask(&a, catalog);
	}
	hr_catalog_free(catalog);
	hr_outfile_done(&a.file);
	hr_request_done(&a.request);
	return status;
}

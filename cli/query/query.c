/* SPDX-License-Identifier: Apache-2.0 */
/*
 * headrace query: SQL or a named query over stores. The answer goes to standard output; notes about
 * data that the answer lacks go to standard error.
 */
#include "cli/query/query.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "cli/cli.h"
#include "cli/commands.h"
#include "cli/query/progress.h"
#include "cli/query/query_clickhouse.h"
#include "clickhouse/target.h"
#include "cli/sheet.h"
#include "query/ask.h"
#include "common/outfile.h"
#include "common/text.h"
#include "common/now.h"

#define LOOK_NS 100000000L /* interval between updates of the progress line */

int (*hr_query_recover)(const char *store, char **ret_note);

/* ---- Ctrl-C, progress, time limit ---- */

/*
 * The thread of the watcher interrupts the statement at the first SIGINT or SIGTERM. A signal ends
 * the process at once if the stores are still being opened, or if it is the second signal: DuckDB
 * does not notice an interrupt while the answer waits for its reader. The time limit (--time) acts
 * like the first signal. In all cases, the temporary files are removed.
 */
struct watcher {
	pthread_t thread;
	bool started;
	bool late; /* the query reached its time limit; valid after the thread has ended */
	_Atomic(struct hr_asking *) asking; /* NULL: the stores are being opened */
	struct hr_progress *progress;
	const struct hr_outfile *file;
	const char *folder_partial; /* contains `file`; NULL: none */
	uint64_t limit_ns;	    /* 0: no limit */
	char *spill;		    /* folder for DuckDB's temporary files; NULL: none */
	sigset_t set;
};

static void remove_spill(const char *spill)
{
	if (spill != NULL)
		hr_remove_tree(spill);
}

static void end_at_once(const struct watcher *w, int status)
{
	remove_spill(w->spill);
	if (w->file->partial != NULL)
		unlink(w->file->partial);
	if (w->folder_partial != NULL)
		hr_remove_tree(w->folder_partial);
	_exit(status);
}

static void report_late(const struct watcher *w)
{
	hr_progress_line(w->progress, "the query reached its time limit (--time)");
}

static void show_progress(struct watcher *w, struct hr_asking *asking)
{
	struct hr_query_scan scan;

	hr_asking_scan(asking, &scan);
	hr_progress_show(w->progress, scan.batches_read + scan.batches_pruned, scan.batches, NULL);
}

static void *watch(void *arg)
{
	struct watcher *w = arg;
	uint64_t started = hr_now_ns(CLOCK_MONOTONIC);
	bool interrupted = false, over;

	for (;;) {
		int signal = sigtimedwait(&w->set, NULL, &(struct timespec){.tv_nsec = LOOK_NS});
		struct hr_asking *asking = atomic_load(&w->asking);

		if (signal == SIGUSR1)
			return NULL;
		if (signal > 0 && (asking == NULL || (interrupted && !w->late)))
			end_at_once(w, HR_EXIT_SIGNAL + signal);
		over = w->limit_ns != 0 && hr_now_ns(CLOCK_MONOTONIC) - started > w->limit_ns;
		if (asking == NULL && over) {
			report_late(w);
			end_at_once(w, HR_ASK_FAILED);
		}
		if (asking == NULL)
			continue;
		interrupted |= signal > 0;
		if (signal > 0)
			w->late = false;
		if (!interrupted && over)
			interrupted = w->late = true;
		/* Repeated: a statement that has not started ignores an interrupt. */
		if (interrupted)
			hr_asking_interrupt(asking);
		else
			show_progress(w, asking);
	}
}

/* Blocks the signals before DuckDB makes threads, which inherit the mask. */
static void watcher_block(struct watcher *w)
{
	sigemptyset(&w->set);
	sigaddset(&w->set, SIGINT);
	sigaddset(&w->set, SIGTERM);
	sigaddset(&w->set, SIGUSR1);
	pthread_sigmask(SIG_BLOCK, &w->set, NULL);
}

static void watcher_start(struct watcher *w)
{
	w->started = pthread_create(&w->thread, NULL, watch, w) == 0;
}

static void watcher_stop(struct watcher *w)
{
	if (!w->started)
		return;
	pthread_kill(w->thread, SIGUSR1);
	pthread_join(w->thread, NULL);
}

/* ---- stores ---- */

/* Opens the output. Returns NULL after it has reported a failure. */
static FILE *open_output(const struct hr_query_request *r, const struct hr_outfile *file,
			 struct hr_progress *progress)
{
	FILE *to = r->into != NULL     ? r->into
		   : r->output != NULL ? fopen(hr_outfile_name(file), "we")
				       : hr_progress_stdout(progress);

	if (to == NULL)
		hr_query_report_output(r, -errno);
	return to;
}

/* Writes the answer. The file of -o has a temporary name until the answer is complete. */
static int query_answer(struct hr_asking *s, const struct hr_query_request *r,
			const struct hr_outfile *file, struct hr_progress *progress)
{
	bool text = r->format != HR_FORMAT_PARQUET;
	FILE *to = text ? open_output(r, file, progress) : NULL;
	int status, err = 0;

	if (text && to == NULL)
		return HR_ASK_FAILED;
	if (r->export != NULL)
		status = (int)hr_export_answer(s, r->export, to);
	else
		status = (int)hr_asking_answer(s, to);
	if (to != NULL && (to == r->into ? fflush(to) : fclose(to)) != 0 &&
	    status == HR_ASK_ANSWERED && errno != EPIPE)
		err = -errno;
	if (r->output != NULL && err == 0)
		err = hr_outfile_end(file, status == HR_ASK_ANSWERED);
	else if (r->output != NULL)
		hr_outfile_end(file, false);
	return err == 0 ? status : hr_query_report_output(r, err);
}

static int run_watched(struct hr_ask *a, const struct hr_query_request *r, struct watcher *w)
{
	struct hr_asking *asking;
	int status;

	watcher_start(w);
	status = hr_ask_open(a, &asking);
	atomic_store(&w->asking, asking);
	if (status == HR_ASK_ANSWERED)
		status = query_answer(asking, r, w->file, w->progress);
	watcher_stop(w);
	hr_asking_close(asking);
	if (!w->late || status != HR_ASK_INTERRUPTED)
		return status;
	report_late(w);
	return HR_ASK_FAILED;
}

/*
 * Makes a private folder for data that exceeds the memory limit. Returns NULL after it has reported
 * an error; then only queries with such data fail.
 */
static char *make_spill(void)
{
	char *path = hr_temporary_folder("query");

	if (path == NULL)
		hr_report("cannot create a folder for temporary files in %s: %s; queries that "
			  "exceed their memory will fail" HR_HINT
			  "set TMPDIR to a folder that you can write to",
			  hr_temporary(), strerrordesc_np(errno));
	return path;
}

static int ask_stores(const struct hr_query_request *r, const struct hr_outfile *file)
{
	struct hr_progress progress;
	struct watcher watcher = {.file = file,
				  .folder_partial = r->folder_partial,
				  .limit_ns = r->limit_ns,
				  .progress = &progress,
				  .spill = make_spill()};
	struct hr_ask a = {.stores = r->stores,
			   .n_stores = r->n_stores,
			   .filter = {.job = r->job},
			   .question = &r->question,
			   .format = r->format,
			   .style = r->style,
			   .parquet = r->output != NULL ? hr_outfile_name(file) : NULL,
			   .memory_bytes = r->memory_bytes,
			   .threads = r->threads,
			   .recover = hr_query_recover};
	int status;

	hr_progress_init(&progress, r->progress);
	a.spill = watcher.spill;
	a.messages = hr_progress_sink(&progress, r->without_notes);
	watcher_block(&watcher);
	status = run_watched(&a, r, &watcher);
	hr_progress_done(&progress);
	remove_spill(watcher.spill);
	free(watcher.spill);
	return status;
}

static int plan_output(const struct hr_query_request *r, struct hr_outfile *file)
{
	int err = r->output != NULL ? hr_outfile_init(file, r->output) : 0;

	if (err < 0)
		return hr_query_report_output(r, err);
	if (r->output != NULL && r->format == HR_FORMAT_PARQUET && file->partial == NULL) {
		hr_report("cannot write Parquet to %s: it is not a regular file", r->output);
		return HR_EXIT_USAGE;
	}
	return 0;
}

static void find_style(struct hr_query_request *r)
{
	char *folder = getcwd(NULL, 0);
	size_t n = folder != NULL ? strlen(folder) : 0;

	if (r->output == NULL && r->into == NULL) {
		r->style.width = hr_terminal_width(STDOUT_FILENO);
		r->style.colour = hr_terminal_colour(STDOUT_FILENO);
	}
	r->folder = calloc(4 * n + 1, 1);
	if (r->folder != NULL && n > 1)
		hr_text_escape(r->folder, 4 * n + 1, folder, n);
	r->style.folder = r->folder != NULL ? r->folder : "";
	free(folder);
}

/* Answers a question to one or more stores, or to a collector. */
static int answer_stores(struct hr_query_request *r)
{
	struct hr_outfile file = {0};
	int status = hr_operands_check(r);

	if (status == 0 && r->n_words == 0 && r->export == NULL)
		return hr_query_start(r->remote ? NULL : r->stores[0],
				      r->newest != NULL ? "" : r->stores[0]);
	if (status == 0)
		status = plan_output(r, &file);
	if (status == 0)
		status = r->remote ? hr_query_remote(r, &file) : ask_stores(r, &file);
	hr_outfile_done(&file);
	return status;
}

/* Answers a question to ClickHouse: about all jobs there, about one job in a temporary store. */
static int answer_clickhouse(struct hr_query_request *r)
{
	char *store = NULL;
	int status;

	if (!r->job)
		return hr_query_fleet(r, r->stores[0]);
	status = hr_query_pull(r->stores[0], r->job, &store);
	if (status != 0)
		return status;
	r->stores[0] = store;
	status = answer_stores(r);
	hr_remove_tree(store);
	free(store);
	return status;
}

int hr_query_answer(struct hr_query_request *r)
{
	signal(SIGPIPE, SIG_IGN);
	find_style(r);
	if (r->n_stores == 1 && hr_ch_target_is(r->stores[0]))
		return answer_clickhouse(r);
	return answer_stores(r);
}

int hr_query_main(int argc, char **argv)
{
	struct hr_query_request request;
	int status;

	if (hr_request_parse(argc, argv, &request, &status) == 0)
		status = hr_query_answer(&request);
	hr_request_done(&request);
	return status;
}

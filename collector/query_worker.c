/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The child of a collector that runs one query: `headrace-collector query-worker FD`
 *
 * It receives a QueryOrder, sends Progress, Output and Note, and at the end Done. A second thread
 * sends Progress, and interrupts the statement at SIGINT.
 */
#include <errno.h>
#include <malloc.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "export/export.h"
#include "query/ask.h"
#include "collector/queries.h"
#include "collector/query_cage.h"
#include "net/wire.h"
#include "common/now.h"

#define PROGRESS_MS 250

#define ARENAS	2
#define PARQUET "answer.parquet"

struct query_worker {
	int fd;
	pthread_mutex_t lock;	 /* held while a message is sent, also while the pipe is full */
	Headrace__Wire *message; /* the message that contains `order` */
	Headrace__QueryOrder *order;
	struct hr_asking *asking;
	bool is_export; /* the answer is an export with the options `export` */
	struct hr_export_options export;
	pthread_t control;
	sigset_t signals; /* blocked signals, which interrupt no call on `fd` */
	uint64_t started_ms;
};

static int query_worker_send(struct query_worker *w, const Headrace__Wire *msg)
{
	uint8_t *buf;
	size_t bytes;
	int r = hr_wire_pack(msg, &buf, &bytes);

	if (r < 0)
		return r;
	pthread_mutex_lock(&w->lock);
	if (send(w->fd, buf, bytes, MSG_NOSIGNAL) != (ssize_t)bytes)
		r = -EPIPE;
	pthread_mutex_unlock(&w->lock);
	free(buf);
	return r;
}

static void query_worker_note(void *self, const char *text)
{
	Headrace__Note body = HEADRACE__NOTE__INIT;

	body.text = (char *)text;
	query_worker_send(self, HR_WIRE(NOTE, note, &body));
}

static void query_worker_done(struct query_worker *w, uint32_t status, uint64_t rows)
{
	Headrace__Done body = HEADRACE__DONE__INIT;

	body.status = status;
	body.rows = rows;
	query_worker_send(w, HR_WIRE(DONE, done, &body));
}

static int output(struct query_worker *w, const void *data, size_t bytes)
{
	Headrace__Output body = HEADRACE__OUTPUT__INIT;

	body.data.data = (uint8_t *)data;
	body.data.len = bytes;
	return query_worker_send(w, HR_WIRE(OUTPUT, output, &body));
}

/* Sends Progress, unless the pipe is full. The pipe takes a short message as a whole. */
static void progress(struct query_worker *w, uint64_t now_ms)
{
	Headrace__Progress body = HEADRACE__PROGRESS__INIT;
	struct hr_query_scan scan;
	uint8_t *buf;
	size_t bytes;

	hr_asking_scan(w->asking, &scan);
	body.done = scan.batches_read + scan.batches_pruned;
	body.total = scan.batches;
	body.elapsed_ms = now_ms - w->started_ms;
	if (hr_wire_pack(HR_WIRE(PROGRESS, progress, &body), &buf, &bytes) < 0)
		return;
	if (pthread_mutex_trylock(&w->lock) == 0) {
		(void)!send(w->fd, buf, bytes, MSG_NOSIGNAL | MSG_DONTWAIT);
		pthread_mutex_unlock(&w->lock);
	}
	free(buf);
}

static int read_all(int fd, uint8_t *buf, size_t bytes)
{
	ssize_t n = recv(fd, buf, bytes, MSG_WAITALL);

	return n == (ssize_t)bytes ? 0 : n < 0 ? -errno : -EPIPE;
}

static int read_order(struct query_worker *w)
{
	uint8_t header[HR_FRAME_HDR_BYTES], *frame;
	Headrace__Wire *msg = NULL;
	size_t bytes = 0, whole;
	uint32_t flags;
	int r = read_all(w->fd, header, sizeof(header));

	if (r < 0)
		return r;
	r = hr_frame_check_any(header, sizeof(header), HR_FRAME_HDR_BYTES + HR_WIRE_MAX_BYTES,
			       &bytes, &flags);
	if (r != -EAGAIN)
		return r < 0 ? r : -EBADMSG;
	frame = malloc(bytes);
	if (frame == NULL)
		return -ENOMEM;
	memcpy(frame, header, sizeof(header));
	r = read_all(w->fd, frame + sizeof(header), bytes - sizeof(header));
	if (r == 0)
		r = hr_frame_check_any(frame, bytes, bytes, &whole, &flags);
	if (r == 0)
		r = hr_wire_unpack(frame, bytes, &msg);
	free(frame);
	if (r < 0 || msg == NULL)
		return r;
	w->message = msg;
	if (msg->body_case != HEADRACE__WIRE__BODY_QUERY_ORDER || msg->query_order->query == NULL)
		return -EBADMSG;
	w->order = msg->query_order;
	return 0;
}

static void *control(void *arg)
{
	const struct timespec wait = {.tv_nsec = PROGRESS_MS * 1000000L};
	struct query_worker *w = arg;
	bool interrupted = false;

	for (;;) {
		int signal = sigtimedwait(&w->signals, NULL, &wait);

		if (signal == SIGUSR1)
			return NULL;
		interrupted |= signal > 0;
		/* repeated: a statement that has not started ignores an interrupt */
		if (interrupted)
			hr_asking_interrupt(w->asking);
		else if (w->order->query->progress)
			progress(w, hr_now_ms(CLOCK_MONOTONIC));
	}
}

static ssize_t write_out(void *cookie, const char *buf, size_t bytes)
{
	for (size_t at = 0; at < bytes; at += HR_WIRE_OUTPUT_BYTES) {
		size_t n = bytes - at < HR_WIRE_OUTPUT_BYTES ? bytes - at : HR_WIRE_OUTPUT_BYTES;
		int r = output(cookie, buf + at, n);

		if (r < 0) {
			errno = -r;
			return 0;
		}
	}
	return (ssize_t)bytes;
}

static enum hr_ask_status answer_text(struct query_worker *w)
{
	FILE *to = fopencookie(w, "w", (cookie_io_functions_t){.write = write_out});
	enum hr_ask_status status;

	if (to == NULL)
		return HR_ASK_FAILED;
	setvbuf(to, NULL, _IOFBF, HR_WIRE_OUTPUT_BYTES);
	status = w->is_export ? hr_export_answer(w->asking, &w->export, to)
			      : hr_asking_answer(w->asking, to);
	return fclose(to) == 0 || status != HR_ASK_ANSWERED ? status : HR_ASK_FAILED;
}

static enum hr_ask_status send_file(struct query_worker *w, const char *path)
{
	char *buf = malloc(HR_WIRE_OUTPUT_BYTES);
	FILE *from = fopen(path, "re");
	int r = buf == NULL || from == NULL ? -errno : 0;
	size_t n;

	while (r == 0 && (n = fread(buf, 1, HR_WIRE_OUTPUT_BYTES, from)) > 0)
		r = output(w, buf, n);
	if (from != NULL)
		fclose(from);
	unlink(path);
	free(buf);
	return r == 0 ? HR_ASK_ANSWERED : HR_ASK_FAILED;
}

static enum hr_ask_status query_worker_answer(struct query_worker *w, const struct hr_ask *a)
{
	enum hr_ask_status status;

	if (a->format != HR_FORMAT_PARQUET)
		return answer_text(w);
	status = hr_asking_answer(w->asking, NULL);
	return status == HR_ASK_ANSWERED ? send_file(w, a->parquet) : status;
}

static enum hr_ask_status query_worker_run(struct query_worker *w, const struct hr_ask *a,
					   struct hr_cage *cage)
{
	enum hr_ask_status status = hr_ask_open(a, &w->asking);

	if (status != HR_ASK_ANSWERED)
		return status;
	if (hr_cage_memory(cage, a->memory_bytes) < 0 ||
	    pthread_create(&w->control, NULL, control, w) != 0) {
		query_worker_note(w, "cannot set the limits of this query: it was not run");
		return HR_ASK_FAILED;
	}
	status = query_worker_answer(w, a);
	pthread_kill(w->control, SIGUSR1);
	pthread_join(w->control, NULL);
	return status;
}

/* Fills `a` and `question`. Returns false after it has sent a note about a mistake. */
static bool understand(struct query_worker *w, const char *const *store, struct hr_ask *a,
		       struct hr_question *question, char **ret_parquet)
{
	const Headrace__QueryOrder *o = w->order;
	const Headrace__Query *query = o->query;

	*a = (struct hr_ask){
	    .stores = store,
	    .n_stores = 1,
	    .where = "this collector's store",
	    .filter = {.job = query->job[0] != '\0' ? query->job : NULL,
		       .one_user = !o->all_jobs,
		       .uid = o->uid},
	    .question = question,
	    .style = {.width = query->width,
		      .colour = query->colour,
		      .all_columns = query->all_columns,
		      .raw = query->raw,
		      .folder = query->folder},
	    .memory_bytes = o->memory_bytes,
	    .threads = o->threads,
	    .spill = o->spill[0] != '\0' ? o->spill : NULL,
	    .spill_bytes = o->spill_bytes,
	    .now_ns = o->now_ns,
	    .silent_ns = (uint64_t)o->silent_ms * 1000000,
	    .messages = {query_worker_note, w},
	};
	w->is_export = hr_export_format(query->format, &w->export.format);
	if (w->is_export) {
		w->export = hr_export_all(w->export.format);
		return hr_export_parse(&w->export, query->words, query->n_words, &a->messages);
	}
	if (query->n_words == 0 || !hr_ask_format(query->format, &a->format)) {
		query_worker_note(w, "this collector does not understand the query: it may be "
				     "older than your headrace");
		return false;
	}
	if (!hr_question_init(question, query->words, query->n_words, &a->messages))
		return false;
	if (a->format != HR_FORMAT_PARQUET)
		return true;
	if (a->spill == NULL) {
		query_worker_note(w, "this collector has no folder for Parquet files (query_spill "
				     "= none): use csv or json");
		return false;
	}
	a->parquet = asprintf(ret_parquet, "%s/" PARQUET, a->spill) < 0 ? NULL : *ret_parquet;
	return a->parquet != NULL;
}

static enum hr_ask_status serve(struct query_worker *w, uint64_t *ret_rows)
{
	const char *store = w->order->store;
	struct hr_cage cage = {.store = store,
			       .spill = w->order->spill[0] != '\0' ? w->order->spill : NULL,
			       .spill_bytes = w->order->spill_bytes,
			       .time_ms = w->order->time_ms,
			       .threads = w->order->threads};
	struct hr_question question = {0};
	char *parquet = NULL, *error = NULL;
	enum hr_ask_status status = HR_ASK_USAGE;
	struct hr_ask a;

	if (hr_duckdb_load(&error) < 0) {
		query_worker_note(w, error != NULL ? error
						   : "DuckDB is not installed at the collector");
		free(error);
		return HR_ASK_NO_DUCKDB;
	}
	if (hr_cage_enter(&cage) < 0) {
		query_worker_note(w, "cannot set the limits of this query: it was not run");
		return HR_ASK_FAILED;
	}
	if (understand(w, &store, &a, &question, &parquet))
		status = query_worker_run(w, &a, &cage);
	*ret_rows = w->asking != NULL ? hr_asking_rows(w->asking) : 0;
	hr_asking_close(w->asking);
	hr_question_done(&question);
	free(parquet);
	return status;
}

/* Returns whether the parent died before PR_SET_PDEATHSIG was set. */
static bool parent_ended(int fd)
{
	struct pollfd end = {.fd = fd};

	return poll(&end, 1, 0) > 0 && (end.revents & (POLLHUP | POLLERR)) != 0;
}

int hr_query_worker(int fd)
{
	struct query_worker w = {
	    .fd = fd, .lock = PTHREAD_MUTEX_INITIALIZER, .started_ms = hr_now_ms(CLOCK_MONOTONIC)};
	enum hr_ask_status status;
	uint64_t rows = 0;

	if (hr_cage_begin() < 0 || parent_ended(fd))
		return EXIT_FAILURE;
	mallopt(M_ARENA_MAX, ARENAS); // NOLINT(concurrency-mt-unsafe): one thread so far
	signal(SIGPIPE, SIG_IGN);
	/* The threads of DuckDB inherit this signal mask. */
	sigemptyset(&w.signals);
	sigaddset(&w.signals, SIGINT);
	sigaddset(&w.signals, SIGUSR1);
	pthread_sigmask(SIG_BLOCK, &w.signals, NULL);
	if (read_order(&w) < 0)
		return EXIT_FAILURE;
	status = serve(&w, &rows);
	query_worker_done(&w, status, rows);
	headrace__wire__free_unpacked(w.message, NULL);
	return (int)status;
}

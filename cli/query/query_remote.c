/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/query/query.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/cli.h"
#include "cli/collector.h"
#include "cli/query/progress.h"

#define TICK_MS	     100
#define UNWRITTEN    (4u << 20) /* bytes of unwritten answer at which the collector waits */
#define SILENT_PINGS 3

/* A piece of the answer, or a note, that waits for the pieces before it. */
struct piece {
	struct piece *next;
	Headrace__Wire *msg;
};

struct remote {
	const struct hr_query_request *request;
	const struct hr_outfile *file;
	struct hr_collector collector;
	struct hr_progress progress;
	uv_timer_t tick;
	uv_signal_t signals[2];
	sigset_t mask; /* of the caller */
	bool interrupted, answered, over;
	uint64_t done, total;
	char *text; /* text of the last Progress message */
	int status;
	int out;
	struct piece *first, **last;
	size_t unwritten, at; /* bytes in the queue; bytes of the first piece that are written */
	uv_fs_t write;
	bool writing;
};

/* ---- the answer and its end ---- */

static void query_remote_close_handles(struct remote *r)
{
	uv_close((uv_handle_t *)&r->tick, NULL);
	for (size_t i = 0; i < 2; i++)
		uv_close((uv_handle_t *)&r->signals[i], NULL);
}

/* Ends the query. The loop returns when the connection is closed and the last write is done. */
static void query_remote_finish(struct remote *r, int status)
{
	if (r->over)
		return;
	r->over = true;
	r->status = status;
	pthread_sigmask(SIG_SETMASK, &r->mask, NULL);
	query_remote_close_handles(r);
	hr_collector_close(&r->collector);
}

/* Prints a text of the collector. Characters that would move the cursor become "?". */
static void print_foreign(struct remote *r, char *text)
{
	for (char *c = text; *c != '\0'; c++)
		if (((unsigned char)*c < ' ' && *c != '\n' && *c != '\t') || *c == 0x7f)
			*c = '?';
	if (!r->request->without_notes || !hr_progress_is_note(text))
		hr_progress_line(&r->progress, text);
}

static void write_on(struct remote *r);

static void drop_first(struct remote *r)
{
	struct piece *p = r->first;

	r->first = p->next;
	if (r->first == NULL)
		r->last = &r->first;
	r->at = 0;
	headrace__wire__free_unpacked(p->msg, NULL);
	free(p);
}

static void query_remote_written(uv_fs_t *write)
{
	struct remote *r = write->data;
	ssize_t n = write->result;

	uv_fs_req_cleanup(write);
	r->writing = false;
	if (n < 0 && n != UV_EAGAIN) {
		if (n != UV_EPIPE) /* UV_EPIPE: the reader has closed the pipe */
			hr_report("cannot write the answer: %s", uv_strerror((int)n));
		query_remote_finish(r, n == UV_EPIPE ? HR_ASK_ANSWERED : HR_ASK_FAILED);
		return;
	}
	r->at += n > 0 ? (size_t)n : 0;
	r->unwritten -= n > 0 ? (size_t)n : 0;
	if (r->at == r->first->msg->output->data.len)
		drop_first(r);
	if (r->collector.conn != NULL && r->unwritten < UNWRITTEN)
		hr_conn_pause(r->collector.conn, false);
	write_on(r);
}

static void write_on(struct remote *r)
{
	uv_buf_t buf;

	if (r->writing || r->over)
		return;
	for (; r->first != NULL && r->first->msg->body_case == HEADRACE__WIRE__BODY_NOTE;
	     drop_first(r))
		print_foreign(r, r->first->msg->note->text);
	if (r->first == NULL) {
		if (r->answered)
			query_remote_finish(r, r->status);
		return;
	}
	if (r->request->output == NULL && r->request->into == NULL)
		hr_progress_answer(&r->progress);
	buf = uv_buf_init((char *)r->first->msg->output->data.data + r->at,
			  (unsigned)(r->first->msg->output->data.len - r->at));
	r->write.data = r;
	r->writing = uv_fs_write(&r->collector.loop, &r->write, r->out, &buf, 1, -1,
				 query_remote_written) == 0;
	if (!r->writing)
		query_remote_finish(r, HR_ASK_FAILED);
}

/* Queues an Output or a Note. Takes over the message, and frees it once it is written. */
static int query_remote_queue(struct remote *r, Headrace__Wire *msg)
{
	bool output = msg->body_case == HEADRACE__WIRE__BODY_OUTPUT;
	struct piece *p = calloc(1, sizeof(*p));

	if (p == NULL || (output && msg->output->data.len == 0)) {
		headrace__wire__free_unpacked(msg, NULL);
		free(p);
		return p == NULL ? -ENOMEM : 0;
	}
	p->msg = msg;
	*r->last = p;
	r->last = &p->next;
	r->unwritten += output ? msg->output->data.len : 0;
	if (r->unwritten >= UNWRITTEN)
		hr_conn_pause(r->collector.conn, true);
	write_on(r);
	return 0;
}

/* ---- messages ---- */

/* Returns the words of the query (malloc'ed), with absolute paths. NULL: no memory. */
static char **words(const struct hr_query_request *request, size_t *ret_n)
{
	const struct hr_named_args *args = &request->question.args;
	bool understood = request->question.named.sql != NULL;
	char **list = calloc(request->n_words + HR_NAMED_ARGS + 1, sizeof(*list));
	size_t n = 0;

	if (list == NULL)
		return NULL;
	for (size_t i = 0; i < (understood ? 1 : request->n_words); i++)
		list[n++] = strdup(request->words[i]);
	for (size_t i = 0; understood && i < args->n; i++)
		if (args->given[i] &&
		    asprintf(&list[n], "%s=%s", args->list[i].name, args->list[i].text) >= 0)
			n++;
	*ret_n = n;
	return list;
}

static void query_remote_ask(struct remote *r)
{
	Headrace__Query body = HEADRACE__QUERY__INIT;

	body.words = words(r->request, &body.n_words);
	body.job = r->request->job != NULL ? (char *)r->request->job : "";
	body.format =
	    (char *)(r->request->export != NULL ? hr_export_name(r->request->export->format)
						: hr_ask_format_name(r->request->format));
	body.width = r->request->style.width;
	body.all_columns = r->request->style.all_columns;
	body.raw = r->request->style.raw;
	body.colour = r->request->style.colour;
	body.folder = (char *)r->request->style.folder;
	body.memory_bytes = r->request->memory_bytes;
	body.threads = r->request->threads;
	body.time_ms = (uint32_t)(r->request->limit_ns / 1000000);
	body.progress = r->progress.on;
	if (body.words != NULL)
		hr_collector_send(&r->collector, HR_WIRE(QUERY, query, &body));
	for (size_t i = 0; body.words != NULL && i < body.n_words; i++)
		free(body.words[i]);
	free(body.words);
}

static void take_progress(struct remote *r, Headrace__Progress *p)
{
	r->done = p->done;
	r->total = p->total;
	free(r->text);
	hr_wire_sanitize(p->text, false);
	r->text = strdup(p->text);
}

static int query_remote_take(void *self, Headrace__Wire *msg)
{
	struct remote *r = self;

	/* ignores what follows the end of the answer */
	switch (r->answered ? HEADRACE__WIRE__BODY__NOT_SET : msg->body_case) {
	case HEADRACE__WIRE__BODY_PROGRESS:
		take_progress(r, msg->progress);
		break;
	case HEADRACE__WIRE__BODY_NOTE:
		hr_wire_sanitize(msg->note->text, true);
		return query_remote_queue(r, msg);
	case HEADRACE__WIRE__BODY_OUTPUT:
		return query_remote_queue(r, msg);
	case HEADRACE__WIRE__BODY_DONE:
		r->answered = true;
		r->status = (int)(msg->done->status & 0xff);
		write_on(r);
		break;
	default: /* ignores messages of later versions */
		break;
	}
	headrace__wire__free_unpacked(msg, NULL);
	return 0;
}

/* ---- the connection ---- */

/* Reports why there is no answer, or no whole one. */
static void report_failure(struct remote *r)
{
	struct hr_collector *c = &r->collector;
	char *text = NULL;

	if (c->welcome)
		c->advice = "the answer is incomplete";
	if (c->reason[0] == '\0')
		text = hr_collector_text(c);
	else if (asprintf(&text, "%s refuses the query: %s", c->shown, hr_collector_why(c)) < 0)
		text = NULL;
	if (text != NULL)
		print_foreign(r, text);
	free(text);
}

static void query_remote_changed(void *self)
{
	struct remote *r = self;
	const struct hr_collector *c = &r->collector;
	bool unavailable = c->reason[0] != '\0' ? strcmp(c->reason, "busy") == 0 : !c->welcome;

	if (c->error == 0) {
		query_remote_ask(r);
	} else if (!r->over && !r->answered) {
		report_failure(r);
		query_remote_finish(r, unavailable ? HR_ASK_UNAVAILABLE : HR_ASK_FAILED);
	}
}

static void query_remote_on_tick(uv_timer_t *tick)
{
	struct remote *r = tick->data;
	struct hr_collector *c = &r->collector;
	uint64_t now = uv_now(&c->loop);

	hr_progress_show(&r->progress, r->done, r->total, c->welcome ? r->text : "connecting");
	if (!c->welcome || c->conn == NULL || c->ping_ms == 0)
		return;
	/* Sends a Pong without a Ping, because Pings are not read while the output is blocked. */
	if (now - c->sent_ms >= c->ping_ms)
		hr_collector_pong(c, 0);
	if (r->unwritten < UNWRITTEN &&
	    now - hr_conn_received_ms(c->conn) > (uint64_t)SILENT_PINGS * c->ping_ms) {
		hr_progress_line(
		    &r->progress,
		    "the collector sends no data: check that it runs, and that the network works");
		query_remote_finish(r, HR_ASK_FAILED);
	}
}

static void interrupted(uv_signal_t *handle, int signal)
{
	Headrace__Cancel body = HEADRACE__CANCEL__INIT;
	struct remote *r = handle->data;

	if (r->interrupted) {
		if (r->file->partial != NULL)
			unlink(r->file->partial);
		if (r->request->folder_partial != NULL)
			hr_remove_tree(r->request->folder_partial);
		_exit(HR_EXIT_SIGNAL + signal);
	}
	r->interrupted = true;
	if (!r->collector.welcome) {
		query_remote_finish(r, HR_EXIT_SIGNAL + signal);
		return;
	}
	hr_collector_send(&r->collector, HR_WIRE(CANCEL, cancel, &body));
}

static void query_remote_begin(struct remote *r)
{
	static const struct hr_collector_events events = {.changed = query_remote_changed,
							  .take = query_remote_take};
	static const int caught[] = {SIGINT, SIGTERM};
	sigset_t set;

	uv_timer_init(&r->collector.loop, &r->tick);
	r->tick.data = r;
	uv_timer_start(&r->tick, query_remote_on_tick, TICK_MS, TICK_MS);
	for (size_t i = 0; i < 2; i++) {
		uv_signal_init(&r->collector.loop, &r->signals[i]);
		r->signals[i].data = r;
		uv_signal_start(&r->signals[i], interrupted, caught[i]);
	}
	sigemptyset(&set);
	for (size_t i = 0; i < 2; i++)
		sigaddset(&set, caught[i]);
	pthread_sigmask(SIG_UNBLOCK, &set, &r->mask); /* the caller may block them */
	hr_collector_connect(&r->collector, "headrace " HEADRACE_VERSION, &events, r);
}

static int open_out(struct remote *r)
{
	if (r->request->output == NULL)
		return r->request->into != NULL ? fileno(r->request->into) : STDOUT_FILENO;
	return open(hr_outfile_name(r->file), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
}

/* Closes the file of -o, which has a temporary name until the answer is complete. */
static int close_out(struct remote *r)
{
	int err = 0;

	if (r->request->output == NULL)
		return r->status;
	if (close(r->out) < 0)
		err = -errno;
	if (err == 0)
		err = hr_outfile_end(r->file, r->status == HR_ASK_ANSWERED);
	return err == 0 ? r->status : hr_query_report_output(r->request, err);
}

int hr_query_remote(const struct hr_query_request *request, const struct hr_outfile *file)
{
	struct remote r = {.request = request, .file = file, .status = HR_ASK_FAILED};
	struct hr_collector *c = &r.collector;

	r.last = &r.first;
	if (hr_collector_init(c, &request->collector) < 0) {
		hr_report("%s", hr_collector_why(c));
	} else if ((r.out = open_out(&r)) < 0) {
		hr_query_report_output(request, -errno);
	} else {
		hr_progress_init(&r.progress, request->progress);
		query_remote_begin(&r);
		uv_run(&c->loop, UV_RUN_DEFAULT);
		while (r.first != NULL)
			drop_first(&r);
		hr_progress_done(&r.progress);
		r.status = close_out(&r);
	}
	hr_collector_done(c);
	free(r.text);
	return r.status;
}

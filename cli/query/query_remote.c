/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/query/query_remote.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include <uv.h>

#include "cli/cli.h"
#include "cli/query/progress.h"
#include "cli/query/query_identity.h"
#include "net/conn.h"
#include "net/wire.h"

#define TICK_MS	     100
#define UNWRITTEN    (4u << 20) /* bytes of unwritten answer at which the collector waits */
#define GREETING_MS  10000
#define SILENT_PINGS 3

/* A piece of the answer, or a note, that waits for the pieces before it. */
struct piece {
	struct piece *next;
	Headrace__Wire *msg;
};

struct remote {
	const struct hr_query_request *request;
	const struct hr_outfile *file;
	struct hr_query_identity identity;
	char shown[HR_ADDRESS_HOST_BYTES + 32];
	struct hr_progress progress;
	uv_loop_t loop;
	uv_timer_t tick;
	uv_signal_t signals[2];
	sigset_t mask; /* of the caller */
	uv_work_t first_work;
	struct hr_conn *conn;
	bool welcome; /* the collector has answered Hello */
	bool again;   /* connecting again, with a MUNGE credential */
	bool interrupted, answered, over;
	uint32_t ping_ms;
	uint64_t sent_ms; /* time of the last sent message; 0: none on this connection */
	uint64_t done, total;
	char *text; /* text of the last Progress message */
	int status;
	int out;
	struct piece *first, **last;
	size_t unwritten, at; /* bytes in the queue; bytes of the first piece that are written */
	uv_fs_t write;
	bool writing;
};

static void query_remote_send(struct remote *r, const Headrace__Wire *msg)
{
	r->sent_ms = uv_now(&r->loop);
	if (r->conn != NULL)
		hr_conn_send_now(r->conn, msg);
}

static void pong(struct remote *r, uint64_t id)
{
	r->sent_ms = uv_now(&r->loop);
	if (r->conn != NULL)
		hr_conn_pong(r->conn, id);
}

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
	if (r->conn != NULL)
		hr_conn_close(r->conn, true);
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
	if (r->conn != NULL && r->unwritten < UNWRITTEN)
		hr_conn_pause(r->conn, false);
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
	r->writing =
	    uv_fs_write(&r->loop, &r->write, r->out, &buf, 1, -1, query_remote_written) == 0;
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
		hr_conn_pause(r->conn, true);
	write_on(r);
	return 0;
}

/* ---- messages ---- */

static void hello(void *self)
{
	struct remote *r = self;

	r->sent_ms = uv_now(&r->loop);
	hr_conn_hello(r->conn, "headrace " HEADRACE_VERSION, r->identity.munge);
}

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
		query_remote_send(r, HR_WIRE(QUERY, query, &body));
	for (size_t i = 0; body.words != NULL && i < body.n_words; i++)
		free(body.words[i]);
	free(body.words);
}

/*
 * Call it if the collector accepts a MUNGE credential and has not identified the user. Returns true
 * if the query connects again with a credential. Returns false if there is no credential, or if the
 * collector did not accept it.
 */
static bool try_again(struct remote *r)
{
	if (r->again || !hr_identity_credential(&r->identity))
		return false;
	r->again = true;
	hr_conn_close(r->conn, true);
	return true;
}

static void take_welcome(struct remote *r, const Headrace__HelloAck *ack)
{
	if (r->welcome || (ack->munge != 0 && r->identity.munge == NULL && try_again(r)))
		return;
	r->welcome = true;
	r->ping_ms = ack->ping_ms;
	hr_conn_limit(r->conn, HR_WIRE_MAX_BYTES + HR_FRAME_HDR_BYTES);
	query_remote_ask(r);
}

static void take_refusal(struct remote *r, Headrace__Refusal *refusal)
{
	char *text;

	if (strcmp(refusal->reason, "identity") == 0 && try_again(r))
		return;
	hr_wire_sanitize(refusal->text, false);
	if (asprintf(&text, "%s refuses the query: %s", r->shown, refusal->text) >= 0) {
		print_foreign(r, text);
		free(text);
	}
	query_remote_finish(r, strcmp(refusal->reason, "busy") == 0 ? HR_ASK_UNAVAILABLE
								    : HR_ASK_FAILED);
}

static void take_progress(struct remote *r, Headrace__Progress *p)
{
	r->done = p->done;
	r->total = p->total;
	free(r->text);
	hr_wire_sanitize(p->text, false);
	r->text = strdup(p->text);
}

static int query_remote_take(struct remote *r, Headrace__Wire *msg)
{
	switch (msg->body_case) {
	case HEADRACE__WIRE__BODY_HELLO_ACK:
		take_welcome(r, msg->hello_ack);
		break;
	case HEADRACE__WIRE__BODY_REFUSAL:
		take_refusal(r, msg->refusal);
		break;
	case HEADRACE__WIRE__BODY_PING:
		pong(r, msg->ping->id);
		break;
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

static int frame(void *self, uint8_t *buf, size_t bytes, bool control)
{
	struct remote *r = self;
	Headrace__Wire *msg;
	int err = control ? hr_wire_unpack(buf, bytes, &msg) : -EBADMSG;

	free(buf);
	if (err < 0 || r->over || r->answered) {
		if (err == 0)
			headrace__wire__free_unpacked(msg, NULL);
		return err;
	}
	return query_remote_take(r, msg);
}

/* ---- the connection ---- */

static void closed(void *self, int error, const char *why);

static const struct hr_conn_events events = {.ready = hello, .frame = frame, .closed = closed};

static void connect_to(struct remote *r)
{
	int err = hr_conn_connect(&r->loop, &r->request->collector, r->identity.tls, &events, r,
				  &r->conn);

	r->sent_ms = 0;
	if (err == 0)
		return;
	r->conn = NULL;
	hr_report("%s: %s", r->shown, strerrordesc_np(-err));
	query_remote_finish(r, HR_ASK_UNAVAILABLE);
}

static void report_closed(struct remote *r, int error, const char *why)
{
	const char *advice = hr_conn_advice(&r->request->collector, r->identity.tls != NULL, error);
	bool named = strstr(why, r->shown) != NULL;
	char *text;

	if (error == 0)
		why = "the collector has closed the connection";
	if (r->welcome)
		advice = "the answer is incomplete";
	if (asprintf(&text, "%s%s%s%s%s", named ? "" : r->shown, named ? "" : ": ", why,
		     advice[0] != '\0' ? "; " : "", advice) < 0)
		return;
	print_foreign(r, text);
	free(text);
}

static void closed(void *self, int error, const char *why)
{
	struct remote *r = self;
	bool again = r->again && !r->welcome;

	r->conn = NULL;
	if (r->over || r->answered)
		return;
	if (again && error == 0) {
		connect_to(r);
		return;
	}
	report_closed(r, error, why);
	query_remote_finish(r, r->welcome ? HR_ASK_FAILED : HR_ASK_UNAVAILABLE);
}

static void query_remote_on_tick(uv_timer_t *tick)
{
	struct remote *r = tick->data;
	uint64_t now = uv_now(&r->loop);

	hr_progress_show(&r->progress, r->done, r->total, r->welcome ? r->text : "connecting");
	if (!r->welcome && r->sent_ms > 0 && now - r->sent_ms > GREETING_MS) {
		report_closed(r, -ETIMEDOUT,
			      "connected, but the other side does not answer as a collector");
		query_remote_finish(r, HR_ASK_UNAVAILABLE);
		return;
	}
	if (!r->welcome || r->conn == NULL || r->ping_ms == 0)
		return;
	/* Sends a Pong without a Ping, because Pings are not read while the output is blocked. */
	if (now - r->sent_ms >= r->ping_ms)
		pong(r, 0);
	if (r->unwritten < UNWRITTEN &&
	    now - hr_conn_received_ms(r->conn) > (uint64_t)SILENT_PINGS * r->ping_ms) {
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
	if (!r->welcome) {
		query_remote_finish(r, HR_EXIT_SIGNAL + signal);
		return;
	}
	query_remote_send(r, HR_WIRE(CANCEL, cancel, &body));
}

static void no_work(uv_work_t *work)
{
	(void)work;
}

static void query_remote_begin(struct remote *r)
{
	static const int caught[] = {SIGINT, SIGTERM};
	sigset_t set;

	uv_timer_init(&r->loop, &r->tick);
	r->tick.data = r;
	uv_timer_start(&r->tick, query_remote_on_tick, TICK_MS, TICK_MS);
	for (size_t i = 0; i < 2; i++) {
		uv_signal_init(&r->loop, &r->signals[i]);
		r->signals[i].data = r;
		uv_signal_start(&r->signals[i], interrupted, caught[i]);
	}
	sigemptyset(&set);
	for (size_t i = 0; i < 2; i++)
		sigaddset(&set, caught[i]);
	/* The threads of libuv block the signals, which the caller may block after this query. */
	pthread_sigmask(SIG_BLOCK, &set, &r->mask);
	uv_queue_work(&r->loop, &r->first_work, no_work, NULL);
	pthread_sigmask(SIG_UNBLOCK, &set, NULL);
	connect_to(r);
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
	if (err == 0)
		return r->status;
	hr_report("cannot write the answer to %s: %s", r->request->output, strerrordesc_np(-err));
	return HR_ASK_FAILED;
}

int hr_query_remote(const struct hr_query_request *request, const struct hr_outfile *file)
{
	struct remote r = {.request = request, .file = file};
	char *error = NULL;

	r.last = &r.first;
	hr_address_text(&request->collector, r.shown, sizeof(r.shown));
	if (hr_identity_init(&r.identity, &request->collector, &error) < 0) {
		hr_report("%s", error != NULL ? error : "out of memory");
		free(error);
		return HR_ASK_FAILED;
	}
	r.out = open_out(&r);
	if (r.out < 0) {
		hr_report("cannot write the answer to %s: %s", request->output,
			  strerrordesc_np(errno));
		hr_identity_done(&r.identity);
		return HR_ASK_FAILED;
	}
	hr_progress_init(&r.progress, request->progress);
	uv_loop_init(&r.loop);
	query_remote_begin(&r);
	uv_run(&r.loop, UV_RUN_DEFAULT);
	uv_loop_close(&r.loop);
	while (r.first != NULL)
		drop_first(&r);
	hr_progress_done(&r.progress);
	hr_identity_done(&r.identity);
	free(r.text);
	return close_out(&r);
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "collector/queries.h"

#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "query/ask.h"
#include "collector/query_process.h"
#include "common/now.h"
#include "common/text.h"
#include "net/wire.h"

/* output queued for a client, above which the output of the child waits in its pipe */
#define CLIENT_BYTES (1u << 20)
#define KILL_MS	     2000 /* milliseconds from SIGINT to SIGKILL */
/* With at least so many places for running queries, one user cannot take all places. */
#define PLACES_FOR_ALL 3u

/* Why the collector ends a query. A higher value replaces a lower one. */
enum why { WHY_NOT, WHY_BROKEN, WHY_CANCELLED, WHY_LATE, WHY_STOPPED, WHY_DROPPED };

struct query {
	struct hr_queries *all;
	struct query *next;	/* the queries, the oldest first */
	struct hr_conn *client; /* NULL: the client has disconnected, or has received Done */
	struct hr_who who;
	Headrace__Query *asked;
	uint64_t time_ms;
	enum why why;
	char *spill;
	bool running; /* the query was started */
	bool spawned; /* uv_spawn was called, so `process` must be closed */
	bool exited;  /* no process of the query runs */
	int64_t status;
	int signal; /* signal that killed the process, or 0 */
	struct hr_conn *child;
	uv_process_t process;
	uv_timer_t timer;
	unsigned handles; /* how many of `process` and `timer` are open */
};

struct hr_queries {
	uv_loop_t *loop;
	struct hr_queries_config config;
	struct query *first;
	unsigned n_running;
	struct hr_queries_stats stats; /* totals of finished queries */
	uint64_t n_spills;
	void (*gone)(void *self);
	void *gone_self;
	bool stopping;
};

static void start_waiting(struct hr_queries *all);

/* ---- messages to the client ---- */

__attribute__((format(printf, 2, 3))) static void queries_note(struct query *q, const char *format,
							       ...)
{
	Headrace__Note body = HEADRACE__NOTE__INIT;
	va_list args;
	int n;

	va_start(args, format);
	n = vasprintf(&body.text, format, args);
	va_end(args);
	if (n < 0)
		return;
	if (q->client != NULL)
		hr_conn_send_now(q->client, HR_WIRE(NOTE, note, &body));
	free(body.text);
}

static void queries_count(struct hr_queries_stats *stats, uint32_t status)
{
	stats->answered += status == HR_ASK_ANSWERED;
	stats->cancelled += status == HR_ASK_INTERRUPTED;
	stats->failed += status != HR_ASK_ANSWERED && status != HR_ASK_INTERRUPTED;
}

/* Sends Done. The client may then send another query. */
static void queries_done(struct query *q, uint32_t status)
{
	Headrace__Done body = HEADRACE__DONE__INIT;

	if (q->all != NULL)
		queries_count(&q->all->stats, status);
	body.status = status;
	if (q->client != NULL)
		hr_conn_send_now(q->client, HR_WIRE(DONE, done, &body));
	q->client = NULL;
}

static void send_waiting(struct query *q)
{
	Headrace__Progress body = HEADRACE__PROGRESS__INIT;
	char text[64];

	if (!q->asked->progress || q->client == NULL)
		return;
	snprintf(text, sizeof(text), "waiting: %u quer%s running", q->all->n_running,
		 q->all->n_running == 1 ? "y is" : "ies are");
	body.text = text;
	hr_conn_send_now(q->client, HR_WIRE(PROGRESS, progress, &body));
}

/* Sends a note about the end of a query whose process has not sent Done. */
static void explain_end(struct query *q)
{
	char *text;

	switch (q->why) {
	case WHY_LATE:
		queries_note(q,
			     "the query reached its time limit of %s (query_time of the collector, "
			     "or --time)",
			     hr_text_duration(q->time_ms * 1000000).s);
		return;
	case WHY_STOPPED:
		queries_note(q, "the collector is stopping");
		return;
	case WHY_CANCELLED:
		queries_note(q, "interrupted");
		return;
	case WHY_BROKEN:
		queries_note(q,
			     "the process of this query sent an invalid message, and was killed");
		return;
	default:
		break;
	}
	text = hr_query_exit_text(q->status, q->signal);
	queries_note(q, "%s", text ? text : "the process of this query ended");
	free(text);
}

/* ---- the end ---- */

static void queries_forget(struct query *q)
{
	struct hr_queries *all = q->all;
	struct query **at = &all->first;

	while (*at != q)
		at = &(*at)->next;
	*at = q->next;
	if (q->spill != NULL)
		hr_query_spill_remove(q->spill);
	all->n_running -= q->running;
	headrace__query__free_unpacked(q->asked, NULL);
	free(q->spill);
	free(q);
	start_waiting(all);
	if (all->stopping && all->first == NULL && all->gone != NULL)
		all->gone(all->gone_self);
}

static void handle_closed(uv_handle_t *handle)
{
	struct query *q = handle->data;

	if (--q->handles == 0)
		queries_forget(q);
}

static void queries_close_handles(struct query *q)
{
	if (!uv_is_closing((uv_handle_t *)&q->timer))
		uv_close((uv_handle_t *)&q->timer, handle_closed);
	if (q->spawned && !uv_is_closing((uv_handle_t *)&q->process))
		uv_close((uv_handle_t *)&q->process, handle_closed);
}

/* Ends a query when its process has exited and all its output was read. */
static void settle(struct query *q)
{
	if (!q->exited || q->child != NULL)
		return;
	if (q->client != NULL) {
		explain_end(q);
		queries_done(q, q->why == WHY_CANCELLED ? HR_ASK_INTERRUPTED : HR_ASK_FAILED);
	}
	queries_close_handles(q);
}

static void process_exited(uv_process_t *process, int64_t status, int signal)
{
	struct query *q = process->data;

	q->exited = true;
	q->status = status;
	q->signal = signal;
	uv_timer_stop(&q->timer);
	settle(q);
}

static void kill_it(uv_timer_t *timer)
{
	struct query *q = timer->data;

	if (!q->exited)
		uv_process_kill(&q->process, SIGKILL);
}

/* Ends the child (after a cancel or the time limit, first by SIGINT), and drops further output. */
static void queries_end(struct query *q, enum why why)
{
	if (why <= q->why)
		return;
	q->why = why;
	if (q->child != NULL)
		hr_conn_pause(q->child, false);
	if (q->exited)
		return;
	if (why != WHY_CANCELLED && why != WHY_LATE) {
		uv_process_kill(&q->process, SIGKILL);
		return;
	}
	uv_process_kill(&q->process, SIGINT);
	uv_timer_start(&q->timer, kill_it, KILL_MS, 0);
}

static void time_over(uv_timer_t *timer)
{
	queries_end(timer->data, WHY_LATE);
}

/* ---- the child ---- */

/* Passes a message of the child to the client if its kind is valid. Frees `frame`. */
static int relay(struct query *q, uint8_t *frame, size_t bytes, const Headrace__Wire *msg)
{
	bool last = msg->body_case == HEADRACE__WIRE__BODY_DONE;
	uint32_t status = last ? msg->done->status : 0;

	switch (msg->body_case) {
	case HEADRACE__WIRE__BODY_PROGRESS:
	case HEADRACE__WIRE__BODY_OUTPUT:
	case HEADRACE__WIRE__BODY_NOTE:
	case HEADRACE__WIRE__BODY_DONE:
		break;
	default:
		free(frame);
		return -EBADMSG;
	}
	if (q->client == NULL || q->why != WHY_NOT) { /* drops the message; settle() sends Done */
		free(frame);
		return 0;
	}
	hr_conn_send(q->client, frame, bytes);
	if (last) {
		queries_count(&q->all->stats, status);
		q->client = NULL;
	} else if (hr_conn_queued(q->client) > CLIENT_BYTES)
		hr_conn_pause(q->child, true);
	return 0;
}

static int child_frame(void *self, uint8_t *frame, size_t bytes, bool control)
{
	struct query *q = self;
	Headrace__Wire *msg;
	int r = control ? hr_wire_unpack(frame, bytes, &msg) : -EBADMSG;

	if (r < 0) {
		free(frame);
		return r;
	}
	r = relay(q, frame, bytes, msg);
	headrace__wire__free_unpacked(msg, NULL);
	return r;
}

static void child_ready(void *self)
{
	(void)self;
}

static void child_closed(void *self, int error, const char *why)
{
	struct query *q = self;

	(void)why;
	q->child = NULL;
	if (error == -EBADMSG || error == -E2BIG)
		queries_end(q, WHY_BROKEN);
	settle(q);
}

static const struct hr_conn_events child_events = {
    .ready = child_ready, .frame = child_frame, .closed = child_closed};

static uint64_t smaller(uint64_t asked, uint64_t most)
{
	return asked == 0 || (most != 0 && asked > most) ? most : asked;
}

static int order(struct query *q)
{
	const struct hr_queries_config *c = &q->all->config;
	Headrace__QueryOrder body = HEADRACE__QUERY_ORDER__INIT;

	body.query = q->asked;
	body.store = (char *)c->store;
	body.all_jobs = q->who.operator_;
	body.uid = q->who.uid;
	body.memory_bytes = smaller(q->asked->memory_bytes, c->memory_bytes);
	body.threads = (uint32_t)smaller(q->asked->threads,
					 c->threads != 0 ? c->threads : uv_available_parallelism());
	body.time_ms = (uint32_t)q->time_ms;
	body.spill = q->spill != NULL ? q->spill : "";
	body.spill_bytes = c->spill_bytes;
	body.silent_ms = (uint32_t)c->silent_ms;
	body.now_ns = hr_now_ns(CLOCK_REALTIME);
	return hr_conn_send_now(q->child, HR_WIRE(QUERY_ORDER, query_order, &body));
}

/* Starts the child and sends QueryOrder. The caller closes the handles, even on failure. */
static int begin_child(struct query *q)
{
	const struct hr_queries_config *c = &q->all->config;
	int pair[2], r = 0;

	if (c->spill != NULL)
		r = hr_query_spill_make(c->spill, q->all->n_spills++, &q->spill);
	if (r < 0) { /* a full disk does not prevent queries */
		queries_note(q,
			     "this query cannot use more than its memory: cannot create a folder "
			     "for temporary files: %s",
			     strerrordesc_np(-r));
		free(q->spill);
		q->spill = NULL;
	}
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) < 0)
		return -errno;
	r = hr_query_spawn(q->all->loop, c->exe, pair[1], process_exited, &q->process, &q->spawned);
	q->process.data = q;
	q->handles += q->spawned;
	close(pair[1]);
	if (r < 0) {
		close(pair[0]);
		return r;
	}
	q->exited = false;
	r = hr_conn_adopt(q->all->loop, pair[0], &child_events, q, &q->child);
	if (r < 0) {
		q->child = NULL;
		return r;
	}
	hr_conn_limit(q->child, HR_WIRE_MAX_BYTES + HR_FRAME_HDR_BYTES);
	return order(q);
}

static void queries_start(struct query *q)
{
	int r;

	q->running = true;
	q->all->n_running++;
	q->exited = true; /* begin_child() sets this to false */
	uv_timer_init(q->all->loop, &q->timer);
	q->timer.data = q;
	q->handles = 1;
	r = begin_child(q);
	if (r == 0) {
		if (q->time_ms != 0)
			uv_timer_start(&q->timer, time_over, q->time_ms, 0);
		return;
	}
	queries_note(q, "cannot start a process for this query: %s", strerrordesc_np(-r));
	queries_done(q, HR_ASK_FAILED);
	if (!q->exited)
		uv_process_kill(&q->process, SIGKILL);
	if (q->child != NULL)
		hr_conn_close(q->child, true);
	settle(q);
}

/* ---- the queue ---- */

static unsigned running_of(const struct hr_queries *all, uint32_t uid)
{
	unsigned n = 0;

	for (const struct query *q = all->first; q != NULL; q = q->next)
		n += q->running && q->who.uid == uid;
	return n;
}

/*
 * Returns the next query to start: the oldest one of the user with the fewest running queries. The
 * last of three or more places is reserved for users without a running query, so that a user with
 * many queries, or with unread answers, cannot block others.
 */
static struct query *next_in_line(const struct hr_queries *all, unsigned most)
{
	bool last = most >= PLACES_FOR_ALL && all->n_running == most - 1;
	struct query *found = NULL;
	unsigned fewest = UINT_MAX;

	if (all->n_running >= most)
		return NULL;
	for (struct query *q = all->first; q != NULL; q = q->next) {
		unsigned n = q->running ? UINT_MAX : running_of(all, q->who.uid);

		if (n < fewest && !(last && n > 0)) {
			found = q;
			fewest = n;
		}
	}
	return found;
}

static void start_waiting(struct hr_queries *all)
{
	unsigned most = all->config.at_once > 0 ? all->config.at_once : 1;
	struct query *q;

	while (!all->stopping && (q = next_in_line(all, most)) != NULL)
		queries_start(q);
	for (q = all->first; q != NULL; q = q->next)
		if (!q->running)
			send_waiting(q);
}

static struct query *of_client(const struct hr_queries *all, const struct hr_conn *client)
{
	struct query *q = all->first;

	while (q != NULL && q->client != client)
		q = q->next;
	return q;
}

static void queries_refuse(struct hr_conn *client, const char *text)
{
	struct query q = {.client = client};

	queries_note(&q, "%s", text);
	queries_done(&q, HR_ASK_FAILED);
}

static bool too_many(const struct hr_queries *all, const struct hr_who *who)
{
	unsigned n = 0;

	for (const struct query *q = all->first; q != NULL; q = q->next)
		n += q->client != NULL && q->who.uid == who->uid;
	return all->config.per_caller != 0 && n >= all->config.per_caller;
}

static void queries_add(struct hr_queries *all, struct query *q)
{
	struct query **at = &all->first;

	while (*at != NULL)
		at = &(*at)->next;
	*at = q;
	q->all = all;
}

int hr_queries_begin(struct hr_queries *all, struct hr_conn *client, const struct hr_who *who,
		     const Headrace__Query *query)
{
	struct query *q;

	if (of_client(all, client) != NULL)
		return -EBUSY;
	if (!who->user && !who->operator_) {
		queries_refuse(client, HR_WHO_UNKNOWN);
		return -EACCES;
	}
	if (!all->config.store) {
		queries_refuse(client,
			       "this collector keeps its data in ClickHouse: ask there, with "
			       "headrace query clickhouse://...");
		return 0;
	}
	if (all->stopping || too_many(all, who)) {
		queries_refuse(client, all->stopping ? "the collector is stopping"
						     : "too many of your queries run or wait on "
						       "this collector (query_per_caller)");
		return 0;
	}
	q = calloc(1, sizeof(*q));
	if (q == NULL)
		return -ENOMEM;
	q->asked = hr_message_copy(&query->base);
	if (q->asked == NULL) {
		free(q);
		return -ENOMEM;
	}
	q->client = client;
	q->who = *who;
	q->time_ms = smaller(query->time_ms, all->config.time_ms);
	queries_add(all, q);
	start_waiting(all);
	return 0;
}

void hr_queries_cancel(struct hr_queries *all, struct hr_conn *client)
{
	struct query *q = of_client(all, client);

	if (q == NULL)
		return;
	if (q->running) {
		queries_end(q, WHY_CANCELLED);
		return;
	}
	queries_note(q, "interrupted");
	queries_done(q, HR_ASK_INTERRUPTED);
	queries_forget(q);
}

void hr_queries_drop(struct hr_queries *all, struct hr_conn *client)
{
	struct query *q = of_client(all, client);

	if (q == NULL)
		return;
	queries_count(&all->stats, HR_ASK_INTERRUPTED);
	q->client = NULL;
	if (!q->running)
		queries_forget(q);
	else
		queries_end(q, WHY_DROPPED);
}

void hr_queries_drained(struct hr_queries *all, struct hr_conn *client)
{
	struct query *q = of_client(all, client);

	if (q != NULL && q->child != NULL)
		hr_conn_pause(q->child, false);
}

bool hr_queries_has(const struct hr_queries *all, const struct hr_conn *client)
{
	return of_client(all, client) != NULL;
}

/* ---- beginning and end of all ---- */

int hr_queries_new(uv_loop_t *loop, const struct hr_queries_config *config, struct hr_queries **ret)
{
	struct hr_queries *all = calloc(1, sizeof(*all));

	if (all == NULL)
		return -ENOMEM;
	all->loop = loop;
	all->config = *config;
	if (config->spill != NULL)
		hr_query_spill_clean(config->spill);
	*ret = all;
	return 0;
}

void hr_queries_stop(struct hr_queries *all, void (*gone)(void *self), void *self)
{
	all->stopping = true;
	for (struct query *q = all->first, *next; q != NULL; q = next) {
		next = q->next;
		if (q->running) {
			queries_end(q, WHY_STOPPED);
			continue;
		}
		queries_note(q, "the collector is stopping");
		queries_done(q, HR_ASK_FAILED);
		queries_forget(q);
	}
	all->gone = gone;
	all->gone_self = self;
	if (all->first == NULL)
		gone(self);
}

void hr_queries_free(struct hr_queries *all)
{
	free(all);
}

void hr_queries_stats(const struct hr_queries *all, struct hr_queries_stats *ret)
{
	*ret = all->stats;
	ret->running = all->n_running;
	for (const struct query *q = all->first; q != NULL; q = q->next)
		ret->waiting += !q->running;
}

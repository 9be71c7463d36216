/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/report/serve.h"

#include <errno.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <uv.h>

#include "cli/cli.h"
#include "cli/report/report_page.h"
#include "common/array.h"
#include "common/json_part.h"
#include "net/http.h"

#define REFRESH_MS  1000u
#define WATCHED_MS  5000u /* a browser that shows the page sends a request within this time */
#define TOKEN_BYTES 16u
#define READ_BYTES  65536u

struct page_server {
	uv_loop_t loop;
	struct hr_http *http;
	char address[64];
	char token[2 * TOKEN_BYTES + 1];
	char hosts[2][64]; /* values of the HTTP field Host that are accepted */
	const char *store, *job;

	/* the newest answer of a child; NULL: no child has answered yet */
	char *json;
	size_t json_bytes;
	bool ended; /* the job has ended, so the data is final */

	/* the child, and `text`: the part of the answer that it has written */
	uv_process_t child;
	uv_pipe_t pipe;
	unsigned handles; /* open handles of the child */
	char *text;
	size_t n, room;
	int64_t status;

	unsigned tries; /* how many children may still fail before the first answer */
	uint64_t asked_ms;
	uv_timer_t timer;
	uv_signal_t signals[2];
	int result;
};

/* ---- the child ---- */

static int start_child(struct page_server *s);

static void server_stop(struct page_server *s, int result)
{
	s->result = result;
	uv_stop(&s->loop);
}

static void on_retry(uv_timer_t *timer)
{
	start_child(timer->data);
}

/* Whether the job of this page (`headrace report --json`) still runs: data.facts[0].state. */
static bool job_runs(const char *json, size_t n)
{
	struct hr_json_part data, facts, state;

	return hr_json_part_find(json, n, "data", &data) &&
	       hr_json_part_find(data.p, data.n, "facts", &facts) && facts.n > 0 &&
	       hr_json_part_find(facts.p + 1, facts.n - 1, "state", &state) &&
	       hr_json_part_is(&state, "running");
}

static void child_done(struct page_server *s)
{
	bool good = s->status == 0 && s->n > 0;

	if (good) {
		free(s->json);
		s->json = s->text;
		s->json_bytes = s->n;
		s->ended = !job_runs(s->json, s->n);
		s->text = NULL;
		s->room = 0;
	} else if (s->json == NULL && --s->tries > 0) {
		uv_timer_start(&s->timer, on_retry, REFRESH_MS, 0);
	} else if (s->json == NULL) {
		server_stop(s, s->status > 0 ? (int)s->status : EXIT_FAILURE);
	}
	if (good && s->http == NULL)
		uv_stop(&s->loop);
}

static void on_closed(uv_handle_t *handle)
{
	struct page_server *s = handle->data;

	if (--s->handles == 0)
		child_done(s);
}

static void on_child_exit(uv_process_t *child, int64_t status, int signal)
{
	struct page_server *s = child->data;

	s->status = signal != 0 ? HR_EXIT_SIGNAL + signal : status;
	uv_close((uv_handle_t *)child, on_closed);
}

static void on_room(uv_handle_t *handle, size_t wanted, uv_buf_t *ret)
{
	struct page_server *s = handle->data;

	(void)wanted;
	(void)hr_array_fit(s->text, s->n + READ_BYTES, s->room);
	*ret = uv_buf_init(s->text + s->n, (unsigned)(s->room - s->n));
}

static void on_output(uv_stream_t *pipe, ssize_t n, const uv_buf_t *buf)
{
	struct page_server *s = pipe->data;

	(void)buf;
	if (n >= 0)
		s->n += (size_t)n;
	else
		uv_close((uv_handle_t *)pipe, on_closed);
}

/* Starts a child. Only the child of the last try reports mistakes to the user. */
static int start_child(struct page_server *s)
{
	char *words[] = {(char *)"headrace",
			 (char *)"report",
			 (char *)"--json",
			 (char *)s->store,
			 (char *)(s->job != NULL ? "--job" : NULL),
			 (char *)s->job,
			 NULL};
	uv_stdio_container_t files[] = {
	    {.flags = UV_IGNORE},
	    {.flags = UV_CREATE_PIPE | UV_WRITABLE_PIPE, .data.stream = (uv_stream_t *)&s->pipe},
	    {.flags = s->json == NULL && s->tries == 1 ? UV_INHERIT_FD : UV_IGNORE, .data.fd = 2}};
	uv_process_options_t options = {.file = "/proc/self/exe",
					.args = words,
					.exit_cb = on_child_exit,
					.stdio = files,
					.stdio_count = 3};
	int r;

	s->n = 0;
	s->handles = 2;
	uv_pipe_init(&s->loop, &s->pipe, 0);
	s->pipe.data = s->child.data = s;
	r = uv_spawn(&s->loop, &s->child, &options);
	if (r == 0)
		r = uv_read_start((uv_stream_t *)&s->pipe, on_room, on_output);
	if (r < 0) {
		s->status = 1;
		uv_close((uv_handle_t *)&s->pipe, on_closed);
		uv_close((uv_handle_t *)&s->child, on_closed);
	}
	return r;
}

static void on_second(uv_timer_t *timer)
{
	struct page_server *s = timer->data;

	if (s->handles == 0 && !s->ended && uv_now(&s->loop) - s->asked_ms < WATCHED_MS)
		start_child(s);
}

/* ---- requests ---- */

/* Compares in constant time, so that the time reveals nothing of the token. */
static bool is_token(const struct page_server *s, const char *text)
{
	unsigned char differs = 0;

	for (size_t i = 0; i < sizeof(s->token) - 1; i++)
		differs |= (unsigned char)(text[i] ^ s->token[i]);
	return differs == 0;
}

/*
 * Returns false for a request that a page of another site has caused. The field Host then names
 * that site, although this name leads to this machine, or Sec-Fetch-Site reports another site.
 */
static bool is_ours(const struct page_server *s, const struct hr_http_request *r)
{
	char value[64];

	if (!hr_http_field(r, "Host", value, sizeof(value)) ||
	    (strcmp(value, s->hosts[0]) != 0 && strcmp(value, s->hosts[1]) != 0))
		return false;
	return !hr_http_field(r, "Sec-Fetch-Site", value, sizeof(value)) ||
	       strcmp(value, "same-origin") == 0 || strcmp(value, "none") == 0;
}

static int answer_page(struct hr_http_answer *ret)
{
	const struct hr_report_page page = {(char *)"<p>Reading the recording.</p>", (char *)"{}"};
	FILE *to = open_memstream(&ret->body, &ret->bytes);

	if (to == NULL)
		return 500;
	hr_report_page_write(&page, "running job", true, to);
	ret->type = "text/html; charset=utf-8";
	return fclose(to) == 0 ? 200 : 500;
}

static int answer_data(struct page_server *s, struct hr_http_answer *ret)
{
	ret->body = malloc(s->json_bytes + 1);
	if (ret->body == NULL)
		return 500;
	memcpy(ret->body, s->json, s->json_bytes);
	ret->bytes = s->json_bytes;
	ret->type = "application/json";
	return 200;
}

static int answer_request(void *self, const struct hr_http_request *r, struct hr_http_answer *ret)
{
	struct page_server *s = self;
	size_t n = sizeof(s->token) - 1;
	const char *rest = r->target + 1 + n;

	if (r->target_bytes < n + 2 || !is_ours(s, r) || !is_token(s, r->target + 1))
		return 404;
	ret->fields = "Cache-Control: no-store\r\n"
		      "Cross-Origin-Resource-Policy: same-origin\r\n"
		      "Referrer-Policy: no-referrer\r\n"
		      "X-Content-Type-Options: nosniff\r\n"
		      "X-Frame-Options: DENY\r\n";
	s->asked_ms = uv_now(&s->loop);
	if (r->target_bytes == n + 2 && rest[0] == '/')
		return answer_page(ret);
	if (r->target_bytes == n + 6 && memcmp(rest, "/data", 5) == 0)
		return answer_data(s, ret);
	return 404;
}

/* ---- the server ---- */

static void on_signal(uv_signal_t *signal, int number)
{
	(void)number;
	server_stop(signal->data, EXIT_SUCCESS);
}

static int make_token(struct page_server *s)
{
	unsigned char bytes[TOKEN_BYTES];

	if (getrandom(bytes, sizeof(bytes), 0) != sizeof(bytes))
		return -errno;
	for (size_t i = 0; i < sizeof(bytes); i++)
		snprintf(s->token + 2 * i, 3, "%02x", bytes[i]);
	return 0;
}

/* Opens the HTTP server, and prints its address. Returns 0 or -errno. */
static int server_open(struct page_server *s, unsigned port)
{
	const struct hr_http_config config = {s->address, 0, answer_request, s};
	const char *actual;
	char *error = NULL;
	int r = make_token(s);

	snprintf(s->address, sizeof(s->address), "tcp://127.0.0.1:%u", port);
	if (r == 0)
		r = hr_http_open(&s->loop, &config, &s->http, &error);
	if (r < 0) {
		hr_report("%s", error != NULL ? error : strerrordesc_np(-r));
		free(error);
		return r;
	}
	actual = strrchr(hr_http_address(s->http), ':') + 1;
	snprintf(s->hosts[0], sizeof(s->hosts[0]), "127.0.0.1:%s", actual);
	snprintf(s->hosts[1], sizeof(s->hosts[1]), "localhost:%s", actual);
	hr_report("open http://%s/%s/ on this machine; Ctrl-C ends it" HR_HINT
		  "from another machine, first: ssh -L %s:127.0.0.1:%s THIS_MACHINE",
		  s->hosts[0], s->token, actual, actual);
	return 0;
}

static void close_handle(uv_handle_t *handle, void *arg)
{
	(void)arg;
	if (!uv_is_closing(handle))
		uv_close(handle, NULL);
}

int hr_report_serve(const char *store, const char *job, unsigned port, unsigned tries)
{
	static const int numbers[2] = {SIGINT, SIGTERM};
	struct page_server s = {.store = store, .job = job, .tries = tries, .result = EXIT_SUCCESS};

	uv_loop_init(&s.loop);
	uv_timer_init(&s.loop, &s.timer);
	s.timer.data = &s;
	for (unsigned i = 0; i < 2; i++) {
		uv_signal_init(&s.loop, &s.signals[i]);
		s.signals[i].data = &s;
		uv_signal_start(&s.signals[i], on_signal, numbers[i]);
	}
	start_child(&s);
	uv_run(&s.loop, UV_RUN_DEFAULT);
	if (s.json != NULL && server_open(&s, port) == 0) {
		uv_timer_start(&s.timer, on_second, REFRESH_MS, REFRESH_MS);
		uv_run(&s.loop, UV_RUN_DEFAULT);
	} else if (s.json != NULL) {
		s.result = EXIT_FAILURE;
	}
	hr_http_close(s.http);
	uv_walk(&s.loop, close_handle, NULL);
	uv_run(&s.loop, UV_RUN_DEFAULT);
	uv_loop_close(&s.loop);
	free(s.json);
	free(s.text);
	return s.result;
}

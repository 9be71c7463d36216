/* SPDX-License-Identifier: Apache-2.0 */
#include "net/metrics.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/log.h"
#include "common/now.h"
#include "common/text.h"
#include "net/address.h"

#define PATH	   "/metrics"
#define BACKLOG	   64
#define TEXT_BYTES (HR_ADDRESS_HOST_BYTES + 32)

union io {
	uv_handle_t handle;
	uv_stream_t stream;
	uv_tcp_t tcp;
	uv_pipe_t pipe;
};

struct metrics_client {
	struct metrics_client *next; /* next client, which connected earlier */
	struct hr_metrics *server;
	union io io;
	uv_timer_t timer;
	unsigned handles; /* how many of these two are open */
	uv_write_t write;
	uv_shutdown_t shutdown;
	char request[HR_METRICS_REQUEST_MOST];
	size_t n;
	char *answer; /* NULL: the request is incomplete */
	bool answering;
	bool ended; /* the client has closed its side */
};

struct hr_metrics {
	struct hr_metrics_config config;
	struct hr_address address;
	union io io;
	double start_s; /* wall clock */
	struct metrics_client *clients;
	unsigned n_clients;
	unsigned handles; /* open ones: its own, and one of each client; the last frees this */
	char text[TEXT_BYTES];
};

static bool metrics_begins(const char *text, size_t bytes, const char *with)
{
	size_t n = strlen(with);

	return bytes >= n && memcmp(text, with, n) == 0;
}

/* Returns the status for a line METHOD SP TARGET SP HTTP/1.x. */
static int line_status(const char *line, size_t bytes)
{
	const char *target = memchr(line, ' ', bytes), *end = line + bytes, *version;
	size_t n;

	if (!target || target == line)
		return 400;
	target++;
	version = memchr(target, ' ', (size_t)(end - target));
	if (!version || end - version != 9 || !metrics_begins(version, 9, " HTTP/1."))
		return 400;
	if (!metrics_begins(line, bytes, "GET "))
		return 405;
	n = (size_t)(version - target);
	if (!metrics_begins(target, n, PATH) || (n > strlen(PATH) && target[strlen(PATH)] != '?'))
		return 404;
	return 200;
}

int hr_metrics_status(const char *request, size_t bytes)
{
	const char *line_end = memmem(request, bytes, "\r\n", 2);

	if (line_end && memmem(request, bytes, "\r\n\r\n", 4))
		return line_status(request, (size_t)(line_end - request));
	return bytes < HR_METRICS_REQUEST_MOST ? 0 : 431;
}

static void handle_closed(struct hr_metrics *m)
{
	if (--m->handles == 0)
		free(m);
}

static void on_client_closed(uv_handle_t *handle)
{
	struct metrics_client *c = handle->data;

	if (--c->handles > 0)
		return;
	handle_closed(c->server);
	free(c->answer);
	free(c);
}

static void metrics_leave(struct metrics_client *c)
{
	struct metrics_client **at = &c->server->clients;

	if (uv_is_closing(&c->io.handle))
		return;
	while (*at != c)
		at = &(*at)->next;
	*at = c->next;
	c->server->n_clients--;
	uv_close(&c->io.handle, on_client_closed);
	uv_close((uv_handle_t *)&c->timer, on_client_closed);
}

static void on_time(uv_timer_t *timer)
{
	metrics_leave(timer->data);
}

static const char *status_text(int status)
{
	switch (status) {
	case 200:
		return "OK";
	case 404:
		return "Not Found";
	case 405:
		return "Method Not Allowed";
	case 431:
		return "Request Header Fields Too Large";
	default:
		return "Bad Request";
	}
}

static void write_metrics(struct hr_metrics *m, FILE *out)
{
	const struct hr_metrics_config *c = &m->config;

	hr_metric(out, "headrace_build_info", HR_METRIC_GAUGE,
		  "Always 1; the labels identify the build.");
	hr_metric_value(out, "headrace_build_info", 1, "component", c->component, "version",
			c->version, NULL);
	hr_metric(out, "headrace_up", HR_METRIC_GAUGE, "Always 1 while the daemon answers.");
	hr_metric_value(out, "headrace_up", 1, "component", c->component, NULL);
	hr_metric(out, "headrace_start_time_seconds", HR_METRIC_GAUGE,
		  "Start time of the daemon, seconds since 1970.");
	hr_metric_value(out, "headrace_start_time_seconds", m->start_s, "component", c->component,
			NULL);
	c->write(c->self, out);
}

static char *make_body(struct hr_metrics *m, int status, size_t *ret_bytes)
{
	char *body = NULL;
	FILE *out = open_memstream(&body, ret_bytes);
	bool failed;

	if (!out)
		return NULL;
	if (status == 200)
		write_metrics(m, out);
	else
		fprintf(out, "%s: GET " PATH "\n", status_text(status));
	failed = ferror(out) != 0;
	if (fclose(out) != 0 || failed) {
		free(body);
		return NULL;
	}
	return body;
}

static void on_shut_down(uv_shutdown_t *shutdown, int status)
{
	(void)shutdown; /* the client's end or the timer closes the connection */
	(void)status;
}

/* Does not close yet: if the client has sent too much, that would drop the answer. */
static void on_written(uv_write_t *write, int status)
{
	struct metrics_client *c = write->data;

	c->answering = false;
	if (status < 0 || c->ended || uv_shutdown(&c->shutdown, &c->io.stream, on_shut_down) < 0)
		metrics_leave(c);
}

static void metrics_answer(struct metrics_client *c, int status)
{
	size_t bytes = 0;
	char *body = make_body(c->server, status, &bytes);
	uv_buf_t buf;
	int n = -1;

	if (body)
		n = asprintf(&c->answer,
			     "HTTP/1.1 %d %s\r\n"
			     "Content-Type: text/plain; version=0.0.4; charset=utf-8\r\n"
			     "Content-Length: %zu\r\n%sConnection: close\r\n\r\n%s",
			     status, status_text(status), bytes,
			     status == 405 ? "Allow: GET\r\n" : "", body);
	free(body);
	if (n < 0) {
		c->answer = NULL;
		metrics_leave(c);
		return;
	}
	buf = uv_buf_init(c->answer, (unsigned)n);
	c->write.data = c;
	c->answering = uv_write(&c->write, &c->io.stream, &buf, 1, on_written) == 0;
	if (!c->answering)
		metrics_leave(c);
}

/* Provides memory for bytes after the request, which are dropped. */
static void on_alloc(uv_handle_t *handle, size_t wanted, uv_buf_t *ret)
{
	struct metrics_client *c = handle->data;

	(void)wanted;
	if (c->answer)
		c->n = 0;
	*ret = uv_buf_init(c->request + c->n, (unsigned)(sizeof(c->request) - c->n));
}

static void on_read(uv_stream_t *stream, ssize_t n, const uv_buf_t *buf)
{
	struct metrics_client *c = stream->data;
	int status;

	(void)buf;
	if (n < 0) {
		c->ended = true;
		uv_read_stop(stream);
		if (!c->answering)
			metrics_leave(c);
		return;
	}
	if (c->answer)
		return;
	c->n += (size_t)n;
	status = hr_metrics_status(c->request, c->n);
	if (status != 0)
		metrics_answer(c, status);
}

static struct metrics_client *oldest(const struct hr_metrics *m)
{
	struct metrics_client *c = m->clients;

	while (c->next)
		c = c->next;
	return c;
}

static int init_stream(uv_loop_t *loop, const struct hr_metrics *m, union io *io)
{
	return m->address.local ? uv_pipe_init(loop, &io->pipe, 0) : uv_tcp_init(loop, &io->tcp);
}

static void metrics_on_connection(uv_stream_t *listener, int status)
{
	struct hr_metrics *m = listener->data;
	struct metrics_client *c = status < 0 ? NULL : calloc(1, sizeof(*c));

	if (!c)
		return;
	if (init_stream(listener->loop, m, &c->io) < 0) {
		free(c);
		return;
	}
	if (m->n_clients == HR_METRICS_CLIENTS)
		metrics_leave(oldest(m));
	c->server = m;
	c->next = m->clients;
	m->clients = c;
	m->n_clients++;
	m->handles++;
	c->handles = 2;
	c->io.handle.data = c->timer.data = c;
	uv_timer_init(listener->loop, &c->timer);
	uv_timer_start(&c->timer, on_time,
		       m->config.limit_ms > 0 ? m->config.limit_ms : HR_METRICS_MS, 0);
	if (uv_accept(listener, &c->io.stream) < 0 ||
	    uv_read_start(&c->io.stream, on_alloc, on_read) < 0)
		metrics_leave(c);
}

static int bind_local(struct hr_metrics *m)
{
	int r;

	if (hr_address_stale(m->address.host))
		unlink(m->address.host);
	r = uv_pipe_bind(&m->io.pipe, m->address.host);
	return r == 0 && chmod(m->address.host, 0660) < 0 ? -errno : r;
}

static int bind_tcp(struct hr_metrics *m)
{
	struct sockaddr_storage s;
	size_t n = 0;
	int r = hr_address_resolve(&m->address, true, &s, 1, &n), bytes = sizeof(s);

	if (r == 0)
		r = uv_tcp_bind(&m->io.tcp, (const struct sockaddr *)&s, 0);
	if (r == 0)
		r = uv_tcp_getsockname(&m->io.tcp, (struct sockaddr *)&s, &bytes);
	if (r == 0)
		m->address.port = hr_sockaddr_port(&s);
	return r;
}

static int metrics_start(uv_loop_t *loop, struct hr_metrics *m)
{
	int r = init_stream(loop, m, &m->io);

	if (r < 0)
		return r;
	m->io.handle.data = m;
	m->handles = 1;
	r = m->address.local ? bind_local(m) : bind_tcp(m);
	hr_address_text(&m->address, m->text, sizeof(m->text));
	return r < 0 ? r : uv_listen(&m->io.stream, BACKLOG, metrics_on_connection);
}

int hr_metrics_open(uv_loop_t *loop, const struct hr_metrics_config *config,
		    struct hr_metrics **ret, char **ret_error)
{
	struct hr_metrics *m = calloc(1, sizeof(*m));
	int r;

	if (!m)
		return -ENOMEM;
	m->config = *config;
	m->start_s = (double)hr_now_ms(CLOCK_REALTIME) / 1000;
	r = hr_address_parse(config->address, &m->address);
	if (r == 0)
		r = metrics_start(loop, m);
	if (r < 0) {
		hr_text_fail(r, ret_error, "metrics: cannot listen at %s: %s", config->address,
			     uv_strerror(r));
		if (m->handles > 0)
			hr_metrics_close(m);
		else
			free(m);
		return r;
	}
	*ret = m;
	return 0;
}

const char *hr_metrics_address(const struct hr_metrics *m)
{
	return m->text;
}

static void on_listener_closed(uv_handle_t *handle)
{
	handle_closed(handle->data);
}

void hr_metrics_close(struct hr_metrics *m)
{
	if (!m)
		return;
	while (m->clients)
		metrics_leave(m->clients);
	uv_close(&m->io.handle, on_listener_closed);
}

struct hr_metrics *hr_metrics_serve(uv_loop_t *loop, const struct hr_metrics_config *config)
{
	struct hr_metrics *m = NULL;
	char *error = NULL;

	if (!hr_text_given(config->address))
		return NULL;
	if (hr_metrics_open(loop, config, &m, &error) < 0)
		hr_log(HR_LOG_ERROR, "%s", error ? error : "metrics: out of memory");
	else
		hr_log(HR_LOG_INFO, "metrics at %s", hr_metrics_address(m));
	free(error);
	return m;
}

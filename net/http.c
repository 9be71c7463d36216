/* SPDX-License-Identifier: Apache-2.0 */
#include "net/http.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/text.h"
#include "net/address.h"
#include "net/conn.h"

#define BACKLOG	   64
#define TEXT	   "text/plain; charset=utf-8"
#define TEXT_BYTES (HR_ADDRESS_HOST_BYTES + 32)

struct http_client {
	struct http_client *next;
	struct hr_http *server;
	union hr_uv_stream io;
	uv_timer_t timer;
	unsigned handles; /* how many of the two handles are open */
	uv_write_t write;
	uv_shutdown_t shutdown;
	char request[HR_HTTP_REQUEST_MOST];
	size_t n;
	char *answer; /* the head of the answer; NULL: the request is incomplete */
	char *body;
	bool answering;
	bool ended; /* the client has ended its side */
};

struct hr_http {
	struct hr_http_config config;
	struct hr_address address;
	union hr_uv_stream io;
	struct http_client *clients;
	unsigned n_clients;
	/* number of open handles: listener and clients; the last close frees this struct */
	unsigned handles;
	char text[TEXT_BYTES];
};

static bool http_begins(const char *text, size_t bytes, const char *with)
{
	size_t n = strlen(with);

	return bytes >= n && memcmp(text, with, n) == 0;
}

/* Parses the line METHOD SP TARGET SP HTTP/1.x. Returns an HTTP status. */
static int parse_line(const char *line, size_t bytes, struct hr_http_request *ret)
{
	const char *target = memchr(line, ' ', bytes), *end = line + bytes, *version;

	if (!target || target == line)
		return 400;
	target++;
	version = memchr(target, ' ', (size_t)(end - target));
	if (!version || end - version != 9 || !http_begins(version, 9, " HTTP/1."))
		return 400;
	if (!http_begins(line, bytes, "GET "))
		return 405;
	ret->target = target;
	ret->target_bytes = (size_t)(version - target);
	return 200;
}

int hr_http_parse(const char *request, size_t bytes, struct hr_http_request *ret)
{
	const char *line_end = memmem(request, bytes, "\r\n", 2);
	const char *end = line_end ? memmem(request, bytes, "\r\n\r\n", 4) : NULL;

	if (end) {
		*ret = (struct hr_http_request){.fields = line_end + 2};
		ret->fields_bytes = end > line_end ? (size_t)(end + 2 - ret->fields) : 0;
		return parse_line(request, (size_t)(line_end - request), ret);
	}
	return bytes < HR_HTTP_REQUEST_MOST ? 0 : 431;
}

bool hr_http_target_is(const struct hr_http_request *r, const char *path)
{
	size_t n = strlen(path);

	return http_begins(r->target, r->target_bytes, path) &&
	       (r->target_bytes == n || r->target[n] == '?');
}

bool hr_http_field(const struct hr_http_request *r, const char *name, char *ret, size_t size)
{
	const char *line = r->fields, *end = line + r->fields_bytes, *next;
	size_t n = strlen(name);

	for (; (next = memmem(line, (size_t)(end - line), "\r\n", 2)) != NULL; line = next + 2) {
		const char *value = line + n + 1;

		if ((size_t)(next - line) <= n || line[n] != ':' || strncasecmp(line, name, n) != 0)
			continue;
		while (value < next && *value == ' ')
			value++;
		snprintf(ret, size, "%.*s", (int)(next - value), value);
		return true;
	}
	return false;
}

static void handle_closed(struct hr_http *s)
{
	if (--s->handles == 0)
		free(s);
}

static void on_client_closed(uv_handle_t *handle)
{
	struct http_client *c = handle->data;

	if (--c->handles > 0)
		return;
	handle_closed(c->server);
	free(c->answer);
	free(c->body);
	free(c);
}

static void http_leave(struct http_client *c)
{
	struct http_client **at = &c->server->clients;

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
	http_leave(timer->data);
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
	case 500:
		return "Internal Server Error";
	default:
		return "Bad Request";
	}
}

static void on_shut_down(uv_shutdown_t *shutdown, int status)
{
	(void)shutdown; /* the end of the client or the timer closes the connection */
	(void)status;
}

/* Does not close yet: with unread data of the client, the kernel would drop the answer. */
static void on_written(uv_write_t *write, int status)
{
	struct http_client *c = write->data;

	c->answering = false;
	if (status < 0 || c->ended || uv_shutdown(&c->shutdown, &c->io.stream, on_shut_down) < 0)
		http_leave(c);
}

static void http_answer(struct http_client *c, int status, const struct hr_http_request *request)
{
	struct hr_http_answer answer = {.type = TEXT};
	uv_buf_t bufs[2];
	int n;

	if (status == 200)
		status = c->server->config.answer(c->server->config.self, request, &answer);
	if (status != 200) {
		free(answer.body);
		answer.type = TEXT;
		n = asprintf(&answer.body, "%s\n", status_text(status));
		answer.body = n < 0 ? NULL : answer.body;
		answer.bytes = n < 0 ? 0 : (size_t)n;
	}
	c->body = answer.body;
	n = asprintf(&c->answer,
		     "HTTP/1.1 %d %s\r\n"
		     "Content-Type: %s\r\n"
		     "Content-Length: %zu\r\n%s%sConnection: close\r\n\r\n",
		     status, status_text(status), answer.type, answer.bytes,
		     status == 405 ? "Allow: GET\r\n" : "",
		     answer.fields != NULL ? answer.fields : "");
	if (n < 0) {
		c->answer = NULL;
		http_leave(c);
		return;
	}
	bufs[0] = uv_buf_init(c->answer, (unsigned)n);
	bufs[1] = uv_buf_init(c->body, (unsigned)answer.bytes);
	c->write.data = c;
	c->answering = uv_write(&c->write, &c->io.stream, bufs, 2, on_written) == 0;
	if (!c->answering)
		http_leave(c);
}

/* Provides memory for bytes after the request, which are ignored. */
static void on_alloc(uv_handle_t *handle, size_t wanted, uv_buf_t *ret)
{
	struct http_client *c = handle->data;

	(void)wanted;
	if (c->answer)
		c->n = 0;
	*ret = uv_buf_init(c->request + c->n, (unsigned)(sizeof(c->request) - c->n));
}

static void on_read(uv_stream_t *stream, ssize_t n, const uv_buf_t *buf)
{
	struct http_client *c = stream->data;
	struct hr_http_request request;
	int status;

	(void)buf;
	if (n < 0) {
		c->ended = true;
		uv_read_stop(stream);
		if (!c->answering)
			http_leave(c);
		return;
	}
	if (c->answer)
		return;
	c->n += (size_t)n;
	status = hr_http_parse(c->request, c->n, &request);
	if (status != 0)
		http_answer(c, status, &request);
}

static struct http_client *oldest(const struct hr_http *s)
{
	struct http_client *c = s->clients;

	while (c->next)
		c = c->next;
	return c;
}

static int init_stream(uv_loop_t *loop, const struct hr_http *s, union hr_uv_stream *io)
{
	return s->address.local ? uv_pipe_init(loop, &io->pipe, 0) : uv_tcp_init(loop, &io->tcp);
}

static void http_on_connection(uv_stream_t *listener, int status)
{
	struct hr_http *s = listener->data;
	struct http_client *c = status < 0 ? NULL : calloc(1, sizeof(*c));

	if (!c)
		return;
	if (init_stream(listener->loop, s, &c->io) < 0) {
		free(c);
		return;
	}
	if (s->n_clients == HR_HTTP_CLIENTS)
		http_leave(oldest(s));
	c->server = s;
	c->next = s->clients;
	s->clients = c;
	s->n_clients++;
	s->handles++;
	c->handles = 2;
	c->io.handle.data = c->timer.data = c;
	uv_timer_init(listener->loop, &c->timer);
	uv_timer_start(&c->timer, on_time, s->config.limit_ms > 0 ? s->config.limit_ms : HR_HTTP_MS,
		       0);
	if (uv_accept(listener, &c->io.stream) < 0 ||
	    uv_read_start(&c->io.stream, on_alloc, on_read) < 0)
		http_leave(c);
}

static int bind_local(struct hr_http *s)
{
	int r;

	if (hr_address_stale(s->address.host))
		unlink(s->address.host);
	r = uv_pipe_bind(&s->io.pipe, s->address.host);
	return r == 0 && chmod(s->address.host, 0660) < 0 ? -errno : r;
}

static int bind_tcp(struct hr_http *s)
{
	struct sockaddr_storage to;
	size_t n = 0;
	int r = hr_address_resolve(&s->address, true, &to, 1, &n), bytes = sizeof(to);

	if (r == 0)
		r = uv_tcp_bind(&s->io.tcp, (const struct sockaddr *)&to, 0);
	if (r == 0)
		r = uv_tcp_getsockname(&s->io.tcp, (struct sockaddr *)&to, &bytes);
	if (r == 0)
		s->address.port = hr_sockaddr_port(&to);
	return r;
}

static int http_start(uv_loop_t *loop, struct hr_http *s)
{
	int r = init_stream(loop, s, &s->io);

	if (r < 0)
		return r;
	s->io.handle.data = s;
	s->handles = 1;
	r = s->address.local ? bind_local(s) : bind_tcp(s);
	hr_address_text(&s->address, s->text, sizeof(s->text));
	return r < 0 ? r : uv_listen(&s->io.stream, BACKLOG, http_on_connection);
}

int hr_http_open(uv_loop_t *loop, const struct hr_http_config *config, struct hr_http **ret,
		 char **ret_error)
{
	struct hr_http *s = calloc(1, sizeof(*s));
	int r;

	if (!s)
		return -ENOMEM;
	s->config = *config;
	r = hr_address_parse(config->address, &s->address);
	if (r == 0)
		r = http_start(loop, s);
	if (r < 0) {
		hr_text_fail(r, ret_error, "cannot listen at %s: %s", config->address,
			     uv_strerror(r));
		if (s->handles > 0)
			hr_http_close(s);
		else
			free(s);
		return r;
	}
	*ret = s;
	return 0;
}

const char *hr_http_address(const struct hr_http *s)
{
	return s->text;
}

static void on_listener_closed(uv_handle_t *handle)
{
	handle_closed(handle->data);
}

void hr_http_close(struct hr_http *s)
{
	if (!s)
		return;
	while (s->clients)
		http_leave(s->clients);
	uv_close(&s->io.handle, on_listener_closed);
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "net/conn_internal.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/un.h>

struct hr__dial {
	struct hr_conn *c; /* NULL: the connection was closed before the resolver returned */
	uv_getaddrinfo_t resolve;
	bool resolving;
	uv_connect_t connect;
	struct sockaddr_storage to[HR_ADDRESSES_MAX];
	size_t n, next;
	uint64_t deadline_ms;
	int error; /* error of the last address */
	char name[HR_ADDRESS_HOST_BYTES + 32];
};

static void on_failed_closed(uv_handle_t *handle);

void hr__dial_end(struct hr_conn *c)
{
	struct hr__dial *d = c->dial;

	c->dial = NULL;
	if (!d)
		return;
	d->c = NULL;
	if (d->resolving)
		(void)uv_cancel((uv_req_t *)&d->resolve); /* the callback runs in any case */
	else
		free(d);
}

static void conn_dial_failed(struct hr_conn *c, int error)
{
	c->dial->error = error;
	if (!uv_is_closing(&c->io.handle))
		uv_close(&c->io.handle, on_failed_closed);
}

static void on_connect(uv_connect_t *req, int status)
{
	struct hr_conn *c = req->handle->data;

	if (status == UV_ECANCELED)
		return; /* the code that closed the handle has stored the reason */
	if (status < 0) {
		conn_dial_failed(c, status);
		return;
	}
	hr__dial_end(c);
	hr__conn_up(c);
}

static void try_next(struct hr_conn *c)
{
	struct hr__dial *d = c->dial;
	uint64_t now = uv_now(c->io.handle.loop);
	size_t left = d->n - d->next;
	int r;

	if (left == 0 || now >= d->deadline_ms) {
		hr__conn_end(c, d->error, "cannot connect to %s: %s", d->name,
			     uv_strerror(d->error));
		return;
	}
	/* Each remaining address gets the same share of the remaining time. */
	hr__conn_timer(c, (d->deadline_ms - now) / left);
	r = uv_tcp_connect(&d->connect, &c->io.tcp, (struct sockaddr *)&d->to[d->next++],
			   on_connect);
	if (r < 0)
		conn_dial_failed(c, r);
}

/* Tries the next address with a new handle in the same memory: a handle connects only once. */
static void on_failed_closed(uv_handle_t *handle)
{
	struct hr_conn *c = handle->data;
	uv_loop_t *loop = handle->loop;
	struct hr__dial *d = c->dial;

	if (c->state == HR__CONN_CLOSING) {
		hr__conn_gone(handle);
		return;
	}
	if (c->io.handle.type != UV_TCP) {
		c->handles--;
		hr__conn_end(c, d->error, "cannot connect to %s: %s", d->name,
			     uv_strerror(d->error));
		return;
	}
	(void)uv_tcp_init(loop, &c->io.tcp); /* cannot fail, because no socket is created */
	c->io.handle.data = c;
	try_next(c);
}

static void on_resolved(uv_getaddrinfo_t *req, int status, struct addrinfo *found)
{
	struct hr__dial *d = req->data;
	struct hr_conn *c = d->c;

	d->resolving = false;
	if (!c) {
		uv_freeaddrinfo(found);
		free(d);
		return;
	}
	if (c->state == HR__CONN_CLOSING) {
		uv_freeaddrinfo(found);
		return;
	}
	for (struct addrinfo *i = found; i && d->n < HR_ADDRESSES_MAX; i = i->ai_next)
		memcpy(&d->to[d->n++], i->ai_addr, i->ai_addrlen);
	uv_freeaddrinfo(found);
	if (status < 0)
		hr__conn_end(c, hr__conn_errno(status), "cannot resolve %s: %s", d->name,
			     uv_strerror(status));
	else
		try_next(c);
}

void hr__dial_timeout(struct hr_conn *c)
{
	if (c->dial->resolving)
		hr__conn_end(c, -ETIMEDOUT, "cannot resolve %s: the resolver does not answer",
			     c->dial->name);
	else
		conn_dial_failed(c, -ETIMEDOUT);
}

static int begin_tcp(struct hr_conn *c, struct hr__dial *d, const struct hr_address *to)
{
	struct addrinfo hints = {
	    .ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM, .ai_flags = AI_NUMERICSERV};
	char port[8];
	int r;

	snprintf(port, sizeof(port), "%u", to->port);
	d->resolve.data = d;
	r = uv_getaddrinfo(c->io.handle.loop, &d->resolve, on_resolved, to->host, port, &hints);
	d->resolving = r == 0;
	return hr__conn_errno(r);
}

int hr__dial_begin(struct hr_conn *c, const struct hr_address *to)
{
	struct hr__dial *d;
	int r = 0;

	if (to->local && strlen(to->host) >= sizeof(((struct sockaddr_un *)NULL)->sun_path))
		return -ENAMETOOLONG; /* libuv would cut the path */
	d = calloc(1, sizeof(*d));
	if (!d)
		return -ENOMEM;
	d->c = c;
	d->error = -ETIMEDOUT;
	d->deadline_ms = uv_now(c->io.handle.loop) + hr_conn_setup_ms;
	hr_address_text(to, d->name, sizeof(d->name));
	if (to->local)
		uv_pipe_connect(&d->connect, &c->io.pipe, to->host, on_connect);
	else
		r = begin_tcp(c, d, to);
	if (r < 0) {
		free(d);
		return r;
	}
	c->dial = d;
	hr__conn_timer(c, hr_conn_setup_ms);
	return 0;
}

/* ---- advice ---- */

#define NOT_RUNNING   "check that headrace-collector runs there"
#define NOT_COLLECTOR "check that this is the address of a headrace-collector"
#define WANTS_TLS                                                                                  \
	"the collector requires a certificate: set HEADRACE_TLS_CERT, _KEY and _CA, or put it "    \
	"into ~/.config/headrace/tls; make-ca --user or --client creates one (docs/tls.md)"
#define WANTS_PLAIN                                                                                \
	"headrace used TLS because it found a certificate: for plain TCP, set HEADRACE_TLS_CERT "  \
	"to an empty value (docs/tls.md)"

const char *hr_conn_advice(const struct hr_address *to, bool tls, int error)
{
	switch (-error) {
	case ECONNREFUSED:
	case ETIMEDOUT:
		return NOT_RUNNING;
	case ENOENT: /* the message of the resolver is enough */
		return to->local ? NOT_RUNNING : "";
	case EPROTONOSUPPORT:
		return tls ? WANTS_PLAIN : WANTS_TLS;
	case 0: /* the peer closed the connection before it sent anything */
	case EBADMSG:
	case ECONNRESET:
		return NOT_COLLECTOR;
	default: /* for example certificates: the error text contains the advice */
		return "";
	}
}

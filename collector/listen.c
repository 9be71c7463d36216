/* SPDX-License-Identifier: Apache-2.0 */
#include "collector/listen.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/log.h"
#include "net/address.h"

#define BACKLOG	   4096
#define TEXT_BYTES (HR_ADDRESS_HOST_BYTES + 32)
#define SOCKETS	   64u /* limit of sockets; a name may have several addresses */

struct listener {
	union hr_uv_stream io;
	struct hr_listeners *all;
	bool tcp;
	char text[TEXT_BYTES];
	char *path; /* path of the local socket, to be removed at the end; else NULL */
};

struct hr_listeners {
	struct hr_tls *tls;
	bool plain; /* also accept plain TCP; who.h decides which peers */
	struct hr_peers *peers;
	size_t n, closing;
	struct listener list[SOCKETS];
};

static void listen_on_connection(uv_stream_t *stream, int status)
{
	struct listener *l = stream->data;

	if (status < 0)
		hr_log_about(HR_LOG_WARNING, "accept", "cannot accept a connection: %s",
			     uv_strerror(status));
	else
		hr_peers_accept(l->all->peers, stream, l->tcp ? l->all->tls : NULL, l->all->plain);
}

/* Sets the address as text, with the actual port if the configured one is 0. */
static void name_tcp(struct listener *l, const struct hr_address *a)
{
	struct hr_address real = *a;
	struct sockaddr_storage s;
	int bytes = sizeof(s);

	if (uv_tcp_getsockname(&l->io.tcp, (struct sockaddr *)&s, &bytes) == 0)
		real.port = hr_sockaddr_port(&s);
	hr_address_text(&real, l->text, sizeof(l->text));
}

static int open_tcp(uv_loop_t *loop, struct listener *l, const struct hr_address *a,
		    const struct sockaddr_storage *s, unsigned flags)
{
	int r = uv_tcp_init(loop, &l->io.tcp);

	if (r < 0)
		return r;
	l->io.handle.data = l;
	l->all->n++;
	r = uv_tcp_bind(&l->io.tcp, (const struct sockaddr *)s, flags);
	if (r == 0)
		r = uv_listen(&l->io.stream, BACKLOG, listen_on_connection);
	if (r == 0)
		name_tcp(l, a);
	return r;
}

static int open_local(uv_loop_t *loop, struct listener *l, const struct hr_address *a)
{
	int r = uv_pipe_init(loop, &l->io.pipe, 0);

	if (r < 0)
		return r;
	l->io.handle.data = l;
	l->all->n++;
	if (hr_address_stale(a->host))
		unlink(a->host);
	r = uv_pipe_bind(&l->io.pipe, a->host);
	if (r < 0)
		return r;
	l->path = strdup(a->host);
	/* Any local user may connect: the kernel identifies the user. */
	if (!l->path || chmod(a->host, 0666) < 0)
		return l->path ? -errno : -ENOMEM;
	hr_address_text(a, l->text, sizeof(l->text));
	return uv_listen(&l->io.stream, BACKLOG, listen_on_connection);
}

static int open_one(uv_loop_t *loop, struct hr_listeners *all, const struct hr_address *a)
{
	struct sockaddr_storage found[HR_ADDRESSES_MAX];
	size_t n = 0;
	int r = 0;

	if (!a->local)
		r = hr_address_resolve(a, true, found, HR_ADDRESSES_MAX, &n);
	if (a->local || r < 0)
		n = 1;
	for (size_t i = 0; i < n && r == 0; i++) {
		struct listener *l = &all->list[all->n];
		unsigned flags = 0;

		if (all->n == SOCKETS)
			return -E2BIG;
		l->all = all;
		if (a->local) {
			r = open_local(loop, l, a);
			continue;
		}
		l->tcp = true;
		if (found[i].ss_family == AF_INET6)
			flags = UV_TCP_IPV6ONLY;
		r = open_tcp(loop, l, a, &found[i], flags);
	}
	return r;
}

int hr_listeners_open(uv_loop_t *loop, const struct hr_collector_config *config, struct hr_tls *tls,
		      struct hr_peers *peers, struct hr_listeners **ret)
{
	struct hr_address addresses[HR_ADDRESSES_MAX];
	struct hr_listeners *all = calloc(1, sizeof(*all));
	char text[TEXT_BYTES];
	size_t n = 0;
	int r;

	if (!all)
		return -ENOMEM;
	all->peers = peers;
	all->tls = tls ? hr_tls_ref(tls) : NULL;
	all->plain = config->plain != HR_PLAIN_NO;
	r = hr_address_parse_list(config->listen, addresses, HR_ADDRESSES_MAX, &n);
	for (size_t i = 0; i < n && r == 0; i++) {
		r = open_one(loop, all, &addresses[i]);
		if (r < 0) {
			hr_address_text(&addresses[i], text, sizeof(text));
			hr_log(HR_LOG_ERROR, "cannot listen on %s: %s", text,
			       strerrordesc_np(-r) ? strerrordesc_np(-r) : uv_strerror(r));
		}
	}
	if (r < 0)
		hr_listeners_close(all);
	else
		*ret = all;
	return r;
}

void hr_listeners_tls(struct hr_listeners *l, struct hr_tls *tls)
{
	hr_tls_unref(l->tls);
	l->tls = tls ? hr_tls_ref(tls) : NULL;
}

void hr_listeners_log(const struct hr_listeners *l)
{
	for (size_t i = 0; i < l->n; i++)
		hr_log(HR_LOG_INFO, "listening on %s%s", l->list[i].text,
		       !l->tls || !l->list[i].tcp ? ""
		       : l->plain		  ? " (TLS, and plain TCP from this machine)"
						  : " (TLS)");
}

const char *hr_listeners_first(const struct hr_listeners *l)
{
	return l->list[0].text;
}

static void listen_on_closed(uv_handle_t *handle)
{
	struct listener *l = handle->data;
	struct hr_listeners *all = l->all;

	free(l->path);
	if (--all->closing > 0)
		return;
	hr_tls_unref(all->tls);
	free(all);
}

void hr_listeners_close(struct hr_listeners *all)
{
	if (!all)
		return;
	all->closing = all->n;
	for (size_t i = 0; i < all->n; i++) {
		if (all->list[i].path)
			unlink(all->list[i].path);
		uv_close(&all->list[i].io.handle, listen_on_closed);
	}
	if (all->n == 0) {
		hr_tls_unref(all->tls);
		free(all);
	}
}

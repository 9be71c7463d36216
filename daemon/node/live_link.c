/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/node/live_link.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "daemon/base/loop.h"

/* Pictures list the operations that have been in flight for longer than this, by default. */
#define IN_FLIGHT_NS UINT64_C(1000000000)

struct hr_live_bytes {
	unsigned refs;
	uint8_t *data;
	size_t bytes;
};

struct hr_live_client {
	struct hr_live_client *next;
	struct hr_live_link *link;
	uv_poll_t poll;
	int fd;
	struct hr_live_bytes *picture;
	size_t sent;
};

/* ---- pictures -------------------------------------------------------------------------------- */

static void picture_unref(struct hr_live_bytes *b)
{
	if (!b || --b->refs > 0)
		return;
	free(b->data);
	free(b);
}

/* Returns the last picture, or a new one if it is old. *ret: a reference that the caller owns. */
static int picture_get(struct hr_live_link *l, struct hr_node *n, uint64_t in_flight_ns,
		       struct hr_live_bytes **ret)
{
	uint64_t now = uv_hrtime() / 1000000;
	struct hr_live_bytes *b;
	int r;

	if (!l->last || now - l->last_ms > HR_LIVE_FRESH_MS || in_flight_ns != l->in_flight_ns) {
		b = calloc(1, sizeof(*b));
		r = b ? hr_node_live(n, in_flight_ns, &b->data, &b->bytes) : -ENOMEM;
		if (r < 0) {
			free(b);
			return r;
		}
		b->refs = 1;
		picture_unref(l->last);
		l->last = b;
		l->last_ms = now;
		l->in_flight_ns = in_flight_ns;
	}
	l->last->refs++;
	*ret = l->last;
	return 0;
}

/* ---- clients --------------------------------------------------------------------------------- */

static void live_link_leave(struct hr_live_client *a)
{
	struct hr_live_client **at = &a->link->clients;

	while (*at != a)
		at = &(*at)->next;
	*at = a->next;
	picture_unref(a->picture);
	uv_poll_stop(&a->poll);
	close(a->fd);
	uv_close((uv_handle_t *)&a->poll, hr_handle_free_data);
}

/* Sends what the socket takes of the picture. False: all is sent, or an error. */
static bool send_more(struct hr_live_client *a)
{
	while (a->sent < a->picture->bytes) {
		size_t left = a->picture->bytes - a->sent;
		ssize_t n = send(a->fd, a->picture->data + a->sent,
				 left < HR_CONTROL_BYTES ? left : HR_CONTROL_BYTES,
				 MSG_NOSIGNAL | MSG_DONTWAIT);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return errno == EAGAIN;
		a->sent += (size_t)n;
	}
	return false;
}

static void on_room(uv_poll_t *poll, int status, int events)
{
	struct hr_live_client *a = poll->data;

	if (status < 0 || (events & UV_DISCONNECT) || !send_more(a))
		live_link_leave(a);
}

static void live_link_make_room(struct hr_live_link *l)
{
	struct hr_live_client *oldest = NULL;
	unsigned n = 0;

	for (struct hr_live_client *a = l->clients; a; a = a->next, n++)
		oldest = a;
	if (n >= HR_LIVE_CLIENTS)
		live_link_leave(oldest);
}

static void live_link_refuse(int fd, int r)
{
	hr_control_send_error(fd, -r, r == -ESHUTDOWN ? "the job has ended" : strerrordesc_np(-r));
	close(fd);
}

static int announce(int fd, const struct hr_live_bytes *b)
{
	Headrace__LivePicture picture = HEADRACE__LIVE_PICTURE__INIT;

	picture.bytes = b->bytes;
	return hr_control_send(fd, HR_CONTROL(LIVE_PICTURE), &picture.base);
}

void hr_live_link_init(struct hr_live_link *l, uv_loop_t *loop)
{
	*l = (struct hr_live_link){.loop = loop};
}

void hr_live_link_take(struct hr_live_link *l, struct hr_node *n,
		       const Headrace__JobRequest *request, int fd)
{
	uint64_t in_flight_ns = request->has_in_flight_ns ? request->in_flight_ns : IN_FLIGHT_NS;
	struct hr_live_client *a = calloc(1, sizeof(*a));
	struct hr_live_bytes *b = NULL;
	int r = a ? picture_get(l, n, in_flight_ns, &b) : -ENOMEM;

	if (r == 0 && fcntl(fd, F_SETFL, O_NONBLOCK) < 0)
		r = -errno;
	if (r == 0)
		r = announce(fd, b);
	if (r < 0) {
		live_link_refuse(fd, r);
		picture_unref(b);
		free(a);
		return;
	}
	live_link_make_room(l);
	*a = (struct hr_live_client){.next = l->clients, .link = l, .fd = fd, .picture = b};
	a->poll.data = a;
	l->clients = a;
	uv_poll_init(l->loop, &a->poll, fd);
	uv_poll_start(&a->poll, UV_WRITABLE | UV_DISCONNECT, on_room);
}

void hr_live_link_done(struct hr_live_link *l)
{
	while (l->clients)
		live_link_leave(l->clients);
	picture_unref(l->last);
	l->last = NULL;
}

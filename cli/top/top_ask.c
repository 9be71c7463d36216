/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "cli/top/top.h"

#define PICTURE_MOST (64u << 20)
#define IN_FLIGHT_NS 1000000000

void hr_top_ask_init(struct hr_top_ask *a)
{
	*a = (struct hr_top_ask){.fd = -1};
}

void hr_top_ask_done(struct hr_top_ask *a)
{
	if (a->fd >= 0)
		close(a->fd);
	free(a->data);
	a->fd = -1;
	a->data = NULL;
	a->bytes = a->used = 0;
}

int hr_top_ask_begin(struct hr_top_ask *a, const struct hr_top_source *source)
{
	int r;

	hr_top_ask_done(a);
	a->refusal[0] = '\0';
	r = hr_control_connect(source->socket, &a->fd);
	if (r < 0)
		return r;
	hr_message_init(&a->message, "live");
	hr_message_add(&a->message, "job", source->job);
	hr_message_add_int(&a->message, "attempt", source->attempt);
	hr_message_add_int(&a->message, "in_flight_ns", IN_FLIGHT_NS);
	r = hr_control_send(a->fd, &a->message);
	if (r < 0)
		hr_top_ask_done(a);
	return r;
}

/* The first message: how much will come, or why nothing will. */
static int announced(struct hr_top_ask *a)
{
	int64_t bytes, code;
	int r = hr_control_recv(a->fd, &a->message);

	if (r == -EAGAIN)
		return 0;
	if (r < 0)
		return r;
	if (hr_message_is(&a->message, "error")) {
		hr_message_get(&a->message, "text", a->refusal, sizeof(a->refusal));
		code = hr_message_get_int(&a->message, "code", EPROTO);
		return code > 0 && code < 4096 ? -(int)code : -EPROTO;
	}
	bytes = hr_message_get_int(&a->message, "bytes", 0);
	if (!hr_message_is(&a->message, "live") || bytes <= 0 || bytes > PICTURE_MOST)
		return -EPROTO;
	a->data = malloc((size_t)bytes);
	if (!a->data)
		return -ENOMEM;
	a->bytes = (size_t)bytes;
	return 0;
}

static int step(struct hr_top_ask *a, Headrace__LiveJob **ret)
{
	ssize_t n;

	if (a->bytes == 0)
		return announced(a);
	n = recv(a->fd, a->data + a->used, a->bytes - a->used, MSG_DONTWAIT);
	if (n < 0)
		return errno == EAGAIN || errno == EINTR ? 0 : -errno;
	if (n == 0)
		return -ECONNRESET;
	a->used += (size_t)n;
	if (a->used < a->bytes)
		return 0;
	*ret = headrace__live_job__unpack(NULL, a->bytes, a->data);
	return *ret ? 1 : -EBADMSG;
}

int hr_top_ask_step(struct hr_top_ask *a, Headrace__LiveJob **ret)
{
	int r = step(a, ret);

	if (r != 0)
		hr_top_ask_done(a);
	return r;
}

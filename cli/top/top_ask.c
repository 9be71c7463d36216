/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "cli/top/top.h"

#define PICTURE_MOST (64u << 20)

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
	Headrace__JobRequest request = HEADRACE__JOB_REQUEST__INIT;
	int r;

	hr_top_ask_done(a);
	a->refusal[0] = '\0';
	r = hr_control_connect(source->socket, &a->fd);
	if (r < 0)
		return r;
	request.job = hr_control_text(source->job);
	request.has_attempt = true;
	request.attempt = source->attempt;
	r = hr_control_send(a->fd, HR_CONTROL(GET_LIVE), &request.base);
	if (r < 0)
		hr_top_ask_done(a);
	return r;
}

/* The first message: how much follows, or a refusal. */
static int take_first(struct hr_top_ask *a, const Headrace__Control *m)
{
	uint64_t bytes;

	if (m->kind_case == HR_CONTROL(ERROR)) {
		snprintf(a->refusal, sizeof(a->refusal), "%s", m->error->text);
		return m->error->code > 0 && m->error->code < 4096 ? -(int)m->error->code : -EPROTO;
	}
	bytes = m->kind_case == HR_CONTROL(LIVE_PICTURE) ? m->live_picture->bytes : 0;
	if (bytes == 0 || bytes > PICTURE_MOST)
		return -EPROTO;
	a->data = malloc(bytes);
	if (!a->data)
		return -ENOMEM;
	a->bytes = bytes;
	return 0;
}

static int receive_first(struct hr_top_ask *a)
{
	Headrace__Control *m;
	int r = hr_control_recv(a->fd, &m);

	if (r == 0)
		r = take_first(a, m);
	hr_control_free(m);
	return r == -EAGAIN ? 0 : r;
}

static int step(struct hr_top_ask *a, Headrace__LiveJob **ret)
{
	ssize_t n;

	if (a->bytes == 0)
		return receive_first(a);
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

/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "cli/top/top.h"

#define PICTURE_MAX (64u << 20)

void hr_top_fetch_done(struct hr_top_fetch *f)
{
	if (f->fd >= 0)
		close(f->fd);
	free(f->data);
	f->fd = -1;
	f->data = NULL;
	f->bytes = f->used = 0;
}

int hr_top_fetch_begin(struct hr_top_fetch *f, const struct hr_top_source *source)
{
	Headrace__JobRequest request = HEADRACE__JOB_REQUEST__INIT;
	int r;

	hr_top_fetch_done(f);
	f->refusal[0] = '\0';
	r = hr_control_connect(source->socket, &f->fd);
	if (r < 0)
		return r;
	request.job = hr_control_text(source->job);
	request.has_attempt = true;
	request.attempt = source->attempt;
	r = hr_control_send(f->fd, HR_CONTROL(GET_LIVE), &request.base);
	if (r < 0)
		hr_top_fetch_done(f);
	return r;
}

/* Handles the first message: the size of the picture, or a refusal. */
static int start_picture(struct hr_top_fetch *f, const Headrace__Control *m)
{
	uint64_t bytes;

	if (m->kind_case == HR_CONTROL(ERROR)) {
		snprintf(f->refusal, sizeof(f->refusal), "%s", m->error->text);
		return m->error->code > 0 && m->error->code < 4096 ? -(int)m->error->code : -EPROTO;
	}
	bytes = m->kind_case == HR_CONTROL(LIVE_PICTURE) ? m->live_picture->bytes : 0;
	if (bytes == 0 || bytes > PICTURE_MAX)
		return -EPROTO;
	f->data = malloc(bytes);
	if (!f->data)
		return -ENOMEM;
	f->bytes = bytes;
	return 0;
}

static int receive_first(struct hr_top_fetch *f)
{
	Headrace__Control *m;
	int r = hr_control_recv(f->fd, &m);

	if (r == 0)
		r = start_picture(f, m);
	hr_control_free(m);
	return r == -EAGAIN ? 0 : r;
}

static int fetch_step(struct hr_top_fetch *f, Headrace__LiveJob **ret)
{
	ssize_t n;

	if (f->bytes == 0)
		return receive_first(f);
	n = recv(f->fd, f->data + f->used, f->bytes - f->used, MSG_DONTWAIT);
	if (n < 0)
		return errno == EAGAIN || errno == EINTR ? 0 : -errno;
	if (n == 0)
		return -ECONNRESET;
	f->used += (size_t)n;
	if (f->used < f->bytes)
		return 0;
	*ret = headrace__live_job__unpack(NULL, f->bytes, f->data);
	return *ret ? 1 : -EBADMSG;
}

int hr_top_fetch_step(struct hr_top_fetch *f, Headrace__LiveJob **ret)
{
	int r = fetch_step(f, ret);

	if (r != 0)
		hr_top_fetch_done(f);
	return r;
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Notices: a process announces that it starts a program without the shim. When the program starts,
 * it is counted.
 */
#include "daemon/attach/attach_internal.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/base/hello.h"

bool hr__notice_keep(struct hr_attach *a, struct pending_attach *g, uint32_t bytes)
{
	struct hr_hello hello;

	if (hr_hello_check(a->message, bytes, &hello) || hello.kind != HR_HELLO_EXEC)
		return false;
	g->notice = malloc(bytes);
	if (!g->notice)
		return false;
	memcpy(g->notice, a->message, bytes);
	g->notice_bytes = bytes;
	if (hr__attach_read_flags(a) & MSG_PEEK)
		(void)recv(g->fd, a->message, 1, MSG_DONTWAIT);
	return true;
}

bool hr__notice_over(struct hr_attach *a, struct pending_attach *g)
{
	char failed;
	ssize_t n = recv(g->fd, &failed, sizeof(failed), MSG_DONTWAIT);

	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return false;
	if (n <= 0)
		hr__notice_count(a, g);
	return true;
}

void hr__notice_count(struct hr_attach *a, struct pending_attach *g)
{
	if (!g->notice)
		return;
	memcpy(a->message, g->notice, g->notice_bytes);
	hr__handshake(a, g, g->notice_bytes);
	free(g->notice);
	g->notice = NULL;
}

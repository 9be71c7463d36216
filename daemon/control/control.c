/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/control/control.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include "common/text.h"

#define BACKLOG 1024

/* ---- building -------------------------------------------------------------------------------- */

void hr_message_init(struct hr_message *m, const char *kind)
{
	m->bytes = (size_t)snprintf(m->text, sizeof(m->text), "%s\n", kind);
}

void hr_message_add(struct hr_message *m, const char *key, const char *value)
{
	size_t key_bytes = strlen(key), value_bytes = hr_text_escape(NULL, 0, value, strlen(value));
	size_t total = key_bytes + 1 + value_bytes + 1;

	if (m->bytes + total >= sizeof(m->text)) {
		m->bytes = sizeof(m->text);
		return;
	}
	memcpy(m->text + m->bytes, key, key_bytes);
	m->text[m->bytes + key_bytes] = '=';
	hr_text_escape(m->text + m->bytes + key_bytes + 1, value_bytes + 1, value, strlen(value));
	m->bytes += total;
	m->text[m->bytes - 1] = '\n';
	m->text[m->bytes] = '\0';
}

void hr_message_add_int(struct hr_message *m, const char *key, int64_t value)
{
	char text[24];

	snprintf(text, sizeof(text), "%" PRId64, value);
	hr_message_add(m, key, text);
}

/* ---- reading --------------------------------------------------------------------------------- */

int hr_message_check(struct hr_message *m)
{
	if (m->bytes == 0 || m->bytes >= sizeof(m->text) || m->text[m->bytes - 1] != '\n' ||
	    memchr(m->text, '\0', m->bytes) != NULL)
		return -EBADMSG;
	m->text[m->bytes] = '\0';
	return 0;
}

int hr_message_is(const struct hr_message *m, const char *kind)
{
	size_t n = strlen(kind);

	return strncmp(m->text, kind, n) == 0 && m->text[n] == '\n';
}

int hr_message_get(const struct hr_message *m, const char *key, char *out, size_t out_bytes)
{
	size_t key_bytes = strlen(key);

	for (const char *line = strchr(m->text, '\n') + 1; *line != '\0';
	     line = strchr(line, '\n') + 1) {
		size_t bytes;

		if (strncmp(line, key, key_bytes) != 0 || line[key_bytes] != '=')
			continue;
		line += key_bytes + 1;
		bytes = (size_t)(strchr(line, '\n') - line);
		if (bytes >= out_bytes)
			return -ENOSPC;
		memcpy(out, line, bytes);
		out[bytes] = '\0';
		return hr_text_unescape(out) < 0 ? -EBADMSG : 0;
	}
	return -ENOENT;
}

int64_t hr_message_get_int(const struct hr_message *m, const char *key, int64_t otherwise)
{
	char text[24], *end;
	long long value;

	if (hr_message_get(m, key, text, sizeof(text)) < 0)
		return otherwise;
	errno = 0;
	value = strtoll(text, &end, 10);
	return errno != 0 || end == text || *end != '\0' ? otherwise : value;
}

/* ---- sockets --------------------------------------------------------------------------------- */

static int seqpacket_socket(const char *path, struct sockaddr_un *ret_address, int *ret_fd)
{
	int fd;

	if (strlen(path) >= sizeof(ret_address->sun_path))
		return -ENAMETOOLONG;
	fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return -errno;
	*ret_address = (struct sockaddr_un){.sun_family = AF_UNIX};
	memcpy(ret_address->sun_path, path, strlen(path) + 1);
	*ret_fd = fd;
	return 0;
}

int hr_control_listen(const char *path, int *ret_fd)
{
	struct sockaddr_un address;
	int fd = -1, r = seqpacket_socket(path, &address, &fd);

	if (r < 0)
		return r;
	unlink(path);
	if (bind(fd, (struct sockaddr *)&address, sizeof(address)) != 0 ||
	    listen(fd, BACKLOG) != 0) {
		r = -errno;
		close(fd);
		return r;
	}
	fcntl(fd, F_SETFL, O_NONBLOCK); /* several workers may wait for one connection */
	*ret_fd = fd;
	return 0;
}

int hr_control_connect(const char *path, int *ret_fd)
{
	return hr_control_connect_within(path, 0, ret_fd);
}

int hr_control_connect_within(const char *path, unsigned timeout_ms, int *ret_fd)
{
	const struct timeval patience = {timeout_ms / 1000, timeout_ms % 1000 * 1000L};
	struct sockaddr_un address;
	int fd = -1, r = seqpacket_socket(path, &address, &fd);

	if (r < 0)
		return r;
	if (timeout_ms > 0)
		setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof(patience));
	while (connect(fd, (struct sockaddr *)&address, sizeof(address)) != 0) {
		if (errno == EINTR)
			continue;
		r = -errno;
		close(fd);
		return r;
	}
	*ret_fd = fd;
	return 0;
}

int hr_control_send(int fd, const struct hr_message *m)
{
	if (m->bytes >= sizeof(m->text))
		return -EMSGSIZE;
	while (send(fd, m->text, m->bytes, MSG_NOSIGNAL) < 0)
		if (errno != EINTR)
			return -errno;
	return 0;
}

int hr_control_recv(int fd, struct hr_message *ret)
{
	ssize_t n;

	while ((n = recv(fd, ret->text, sizeof(ret->text), 0)) < 0)
		if (errno != EINTR)
			return -errno;
	if (n == 0)
		return -ECONNRESET;
	ret->bytes = (size_t)n;
	return hr_message_check(ret);
}

/* Room for one descriptor; with more the kernel closes those that do not fit. */
union carriage {
	struct cmsghdr hdr;
	char bytes[CMSG_SPACE(sizeof(int))];
};

int hr_control_send_fd(int fd, const struct hr_message *m, int carried)
{
	union carriage control = {0};
	struct iovec iov = {(void *)(uintptr_t)m->text, m->bytes};
	struct msghdr msg = {.msg_iov = &iov,
			     .msg_iovlen = 1,
			     .msg_control = control.bytes,
			     .msg_controllen = sizeof(control.bytes)};
	struct cmsghdr *c = CMSG_FIRSTHDR(&msg);

	if (m->bytes >= sizeof(m->text))
		return -EMSGSIZE;
	c->cmsg_level = SOL_SOCKET;
	c->cmsg_type = SCM_RIGHTS;
	c->cmsg_len = CMSG_LEN(sizeof(int));
	memcpy(CMSG_DATA(c), &carried, sizeof(int));
	while (sendmsg(fd, &msg, MSG_NOSIGNAL) < 0)
		if (errno != EINTR)
			return -errno;
	return 0;
}

int hr_control_recv_fd(int fd, struct hr_message *ret, int *ret_carried)
{
	union carriage control = {0};
	struct iovec iov = {ret->text, sizeof(ret->text)};
	struct msghdr msg = {.msg_iov = &iov,
			     .msg_iovlen = 1,
			     .msg_control = control.bytes,
			     .msg_controllen = sizeof(control.bytes)};
	const struct cmsghdr *c;
	ssize_t n;

	*ret_carried = -1;
	while ((n = recvmsg(fd, &msg, MSG_CMSG_CLOEXEC)) < 0)
		if (errno != EINTR)
			return -errno;
	if (n == 0)
		return -ECONNRESET;
	c = CMSG_FIRSTHDR(&msg);
	if (c && c->cmsg_level == SOL_SOCKET && c->cmsg_type == SCM_RIGHTS &&
	    c->cmsg_len == CMSG_LEN(sizeof(int)))
		memcpy(ret_carried, CMSG_DATA(c), sizeof(int));
	ret->bytes = (size_t)n;
	return hr_message_check(ret);
}

int hr_control_wait(int fd, int timeout_ms, struct hr_message *ret)
{
	struct pollfd p = {.fd = fd, .events = POLLIN};
	int n = poll(&p, 1, timeout_ms);

	if (n < 0)
		return -errno;
	return n == 0 ? -ETIMEDOUT : hr_control_recv(fd, ret);
}

int hr_control_ask(int fd, int timeout_ms, struct hr_message *m,
		   void (*take)(void *arg, const struct hr_message *m), void *arg)
{
	int r = hr_control_send(fd, m);

	while (r == 0) {
		r = hr_control_wait(fd, timeout_ms, m);
		if (r == 0 && hr_message_is(m, "over"))
			return 0;
		if (r == 0 && hr_message_is(m, "error"))
			return -EREMOTEIO;
		if (r == 0 && take)
			take(arg, m);
	}
	return r;
}

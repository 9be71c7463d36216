/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/control/control.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include "common/sendfd.h"

#define BACKLOG 1024

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
	fcntl(fd, F_SETFL, O_NONBLOCK);
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

/* ---- messages -------------------------------------------------------------------------------- */

/* Room for one descriptor. The kernel closes further descriptors of a message. */
union carriage {
	struct cmsghdr hdr;
	char bytes[CMSG_SPACE(sizeof(int))];
};

int hr_control_send_fd(int fd, hr_control_kind kind, const ProtobufCMessage *body, int carried)
{
	Headrace__Empty empty = HEADRACE__EMPTY__INIT;
	Headrace__Control m = HEADRACE__CONTROL__INIT;
	uint8_t packet[HR_CONTROL_BYTES];

	/*
	 * The union has only pointers to messages, so this assignment sets the member of any kind.
	 */
	m.kind_case = kind;
	m.done = body ? (Headrace__Empty *)(uintptr_t)body : &empty;
	if (headrace__control__get_packed_size(&m) > sizeof(packet))
		return -EMSGSIZE;
	return hr_send_fds(fd, packet, headrace__control__pack(&m, packet), &carried, carried >= 0,
			   0);
}

int hr_control_send(int fd, hr_control_kind kind, const ProtobufCMessage *body)
{
	return hr_control_send_fd(fd, kind, body, -1);
}

int hr_control_send_error(int fd, int code, const char *text)
{
	Headrace__Error error = HEADRACE__ERROR__INIT;

	error.code = (uint32_t)code;
	error.text = hr_control_text(text);
	return hr_control_send(fd, HR_CONTROL(ERROR), &error.base);
}

int hr_control_recv_fd(int fd, Headrace__Control **ret, int *ret_carried)
{
	uint8_t packet[HR_CONTROL_BYTES];
	union carriage control = {0};
	struct iovec iov = {packet, sizeof(packet)};
	struct msghdr msg = {.msg_iov = &iov,
			     .msg_iovlen = 1,
			     .msg_control = control.bytes,
			     .msg_controllen = sizeof(control.bytes)};
	Headrace__Control *m;
	const struct cmsghdr *c;
	ssize_t n;

	*ret = NULL;
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
	if (msg.msg_flags & MSG_TRUNC)
		return -EBADMSG;
	m = headrace__control__unpack(NULL, (size_t)n, packet);
	if (!m || m->kind_case == HR_CONTROL(_NOT_SET)) {
		hr_control_free(m);
		return -EBADMSG;
	}
	*ret = m;
	return 0;
}

int hr_control_recv(int fd, Headrace__Control **ret)
{
	int carried, r = hr_control_recv_fd(fd, ret, &carried);

	if (carried >= 0)
		close(carried);
	return r;
}

void hr_control_free(Headrace__Control *m)
{
	headrace__control__free_unpacked(m, NULL);
}

void hr_control_keep(Headrace__Control *m)
{
	m->kind_case = HR_CONTROL(_NOT_SET);
}

int hr_control_wait(int fd, int timeout_ms, Headrace__Control **ret)
{
	struct pollfd p = {.fd = fd, .events = POLLIN};
	int n = poll(&p, 1, timeout_ms);

	*ret = NULL;
	if (n < 0)
		return -errno;
	return n == 0 ? -ETIMEDOUT : hr_control_recv(fd, ret);
}

int hr_control_request(int fd, int timeout_ms, hr_control_kind kind, const ProtobufCMessage *body,
		       void (*take)(void *arg, Headrace__Control *m), void *arg, char **ret_refusal)
{
	int r = hr_control_send(fd, kind, body);

	while (r == 0) {
		Headrace__Control *m;

		r = hr_control_wait(fd, timeout_ms, &m);
		if (m == NULL) /* it failed */
			break;
		kind = m->kind_case;
		if (kind == HR_CONTROL(ERROR)) {
			r = -EREMOTEIO;
			if (ret_refusal)
				*ret_refusal = strdup(m->error->text);
		} else if (kind != HR_CONTROL(DONE) && take) {
			take(arg, m);
		}
		hr_control_free(m);
		if (kind == HR_CONTROL(DONE))
			break;
	}
	return r;
}

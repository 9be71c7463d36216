/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/private/kept.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/array.h"

#define LISTEN_FDS_START 3

int hr_kept_find(const struct hr_kept *k, const char *name)
{
	for (size_t i = 0; i < k->n; i++)
		if (strcmp(k->list[i].name, name) == 0)
			return k->list[i].fd;
	return -1;
}

static void kept_remove(struct hr_kept *k, const char *name)
{
	for (size_t i = 0; i < k->n; i++) {
		if (strcmp(k->list[i].name, name) != 0)
			continue;
		close(k->list[i].fd);
		free(k->list[i].name);
		k->list[i] = k->list[--k->n];
		return;
	}
}

void hr_kept_add(struct hr_kept *k, const char *name, int fd)
{
	char *copy = NULL;

	kept_remove(k, name);
	if (k->n < HR_KEPT_MOST && hr_array_reserve(k->list, k->n, k->room))
		copy = strdup(name);
	if (copy == NULL) {
		close(fd);
		return;
	}
	k->list[k->n++] = (struct hr_kept_fd){.name = copy, .fd = fd};
}

void hr_kept_done(struct hr_kept *k)
{
	for (size_t i = 0; i < k->n; i++) {
		free(k->list[i].name);
		close(k->list[i].fd);
	}
	free(k->list);
	*k = (struct hr_kept){0};
}

/* ---- notifications --------------------------------------------------------------------------- */

int hr_notify_open(struct hr_notify *n)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	socklen_t bytes = sizeof(address);
	int on = 1;

	n->fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (n->fd < 0 || setsockopt(n->fd, SOL_SOCKET, SO_PASSCRED, &on, sizeof(on)) != 0 ||
	    bind(n->fd, (struct sockaddr *)&address, sizeof(sa_family_t)) != 0 ||
	    getsockname(n->fd, (struct sockaddr *)&address, &bytes) != 0)
		return -errno;
	snprintf(n->name, sizeof(n->name), "@%.*s",
		 (int)(bytes - offsetof(struct sockaddr_un, sun_path) - 1), address.sun_path + 1);
	return 0;
}

void hr_notify_close(struct hr_notify *n)
{
	if (n->fd >= 0)
		close(n->fd);
	n->fd = -1;
}

/* Keeps the last descriptor that a notice carries. */
static void take_rights(const struct cmsghdr *c, int *fd)
{
	size_t count = (c->cmsg_len - CMSG_LEN(0)) / sizeof(int);

	for (size_t i = 0; i < count; i++) {
		if (*fd >= 0)
			close(*fd);
		memcpy(fd, CMSG_DATA(c) + i * sizeof(int), sizeof(int));
	}
}

int hr_notify_read(struct hr_notify *n, struct hr_notice *ret)
{
	union {
		struct cmsghdr hdr;
		char bytes[CMSG_SPACE(sizeof(struct ucred)) + CMSG_SPACE(4 * sizeof(int))];
	} control;
	struct iovec iov = {.iov_base = ret->text, .iov_len = sizeof(ret->text) - 1};
	struct msghdr msg = {.msg_iov = &iov,
			     .msg_iovlen = 1,
			     .msg_control = control.bytes,
			     .msg_controllen = sizeof(control.bytes)};
	ssize_t bytes;

	do
		bytes = recvmsg(n->fd, &msg, MSG_CMSG_CLOEXEC);
	while (bytes < 0 && errno == EINTR);
	if (bytes < 0)
		return -errno;
	ret->text[bytes] = '\0';
	ret->from = 0;
	ret->fd = -1;
	for (struct cmsghdr *c = CMSG_FIRSTHDR(&msg); c != NULL; c = CMSG_NXTHDR(&msg, c)) {
		if (c->cmsg_level != SOL_SOCKET)
			continue;
		if (c->cmsg_type == SCM_CREDENTIALS)
			ret->from = ((struct ucred *)CMSG_DATA(c))->pid;
		else if (c->cmsg_type == SCM_RIGHTS)
			take_rights(c, &ret->fd);
	}
	return 0;
}

/* Returns the value of `key` in a notice as a new string; NULL: the notice lacks the key. */
static char *notice_value(const struct hr_notice *notice, const char *key)
{
	size_t n = strlen(key);

	for (const char *line = notice->text; line != NULL; line = strchr(line, '\n')) {
		line += *line == '\n';
		if (strncmp(line, key, n) == 0 && line[n] == '=')
			return strndup(line + n + 1, strcspn(line + n + 1, "\n"));
	}
	return NULL;
}

bool hr_notice_has(const struct hr_notice *notice, const char *key, const char *value)
{
	char *found = notice_value(notice, key);
	bool has = found != NULL && strcmp(found, value) == 0;

	free(found);
	return has;
}

void hr_kept_take(struct hr_kept *k, struct hr_notice *notice)
{
	char *name = notice_value(notice, "FDNAME");

	if (notice->fd >= 0 && name != NULL && hr_notice_has(notice, "FDSTORE", "1")) {
		hr_kept_add(k, name, notice->fd);
	} else {
		if (notice->fd >= 0)
			close(notice->fd);
		if (name != NULL && hr_notice_has(notice, "FDSTOREREMOVE", "1"))
			kept_remove(k, name);
	}
	notice->fd = -1;
	free(name);
}

/* ---- the child ------------------------------------------------------------------------------- */

/*
 * Gives the retained descriptors the numbers 3, 4..., and the sockets the numbers after these.
 * Returns the number of the first socket. First moves all of them to higher numbers, because a
 * target number may be in use.
 */
static int pass_descriptors(struct hr_kept *k, const int *sockets, size_t n_sockets)
{
	int first = LISTEN_FDS_START + (int)k->n, above = first + (int)n_sockets;
	int moved[HR_KEPT_SOCKETS];

	for (size_t i = 0; i < k->n; i++) {
		k->list[i].fd = fcntl(k->list[i].fd, F_DUPFD_CLOEXEC, above);
		if (k->list[i].fd < 0)
			_exit(HR_KEPT_FAILED);
	}
	for (size_t i = 0; i < n_sockets; i++)
		moved[i] = fcntl(sockets[i], F_DUPFD_CLOEXEC, above);
	for (size_t i = 0; i < k->n; i++)
		if (dup2(k->list[i].fd, LISTEN_FDS_START + (int)i) < 0)
			_exit(HR_KEPT_FAILED);
	for (size_t i = 0; i < n_sockets; i++)
		if (moved[i] < 0 || dup2(moved[i], first + (int)i) < 0)
			_exit(HR_KEPT_FAILED);
	return first;
}

static void set_variables(struct hr_kept *k, const struct hr_notify *notify)
{
	char number[24], *names = NULL;
	size_t bytes;
	FILE *out = open_memstream(&names, &bytes);

	for (size_t i = 0; out != NULL && i < k->n; i++)
		fprintf(out, "%s%s", i > 0 ? ":" : "", k->list[i].name);
	if (out == NULL || fclose(out) != 0)
		_exit(HR_KEPT_FAILED);
	snprintf(number, sizeof(number), "%zu", k->n);
	/* NOLINTBEGIN(concurrency-mt-unsafe): parent and child have one thread each */
	setenv("LISTEN_FDS", number, 1);
	snprintf(number, sizeof(number), "%d", getpid());
	setenv("LISTEN_PID", number, 1);
	setenv("LISTEN_FDNAMES", names, 1);
	setenv("NOTIFY_SOCKET", notify->name, 1);
	/* NOLINTEND(concurrency-mt-unsafe) */
	free(names);
}

void hr_kept_exec(struct hr_kept *k, const struct hr_notify *notify, const char *exe,
		  char *const *argv, const int *sockets, size_t n_sockets)
{
	size_t n = 0;
	char number[12], **with_number;
	sigset_t none;

	while (argv[n] != NULL)
		n++;
	with_number = calloc(n + 2, sizeof(*with_number));
	if (with_number == NULL || n_sockets > HR_KEPT_SOCKETS)
		_exit(HR_KEPT_FAILED);
	set_variables(k, notify);
	snprintf(number, sizeof(number), "%d", pass_descriptors(k, sockets, n_sockets));
	memcpy(with_number, argv, n * sizeof(*argv));
	with_number[n] = number;
	sigemptyset(&none);
	pthread_sigmask(SIG_SETMASK, &none, NULL);
	execv(exe, with_number);
	_exit(HR_KEPT_FAILED);
}

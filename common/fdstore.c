/* SPDX-License-Identifier: Apache-2.0 */
#include "common/fdstore.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include "common/sendfd.h"

#define LISTEN_FDS_START 3
#define NAME_MAX_BYTES	 200

struct fd_store {
	int fd; /* -1: no socket */
	int error;
	int vain; /* set after a time-out: pushes do not wait */
	char prefix[24];
};

/* `notify`: the process that started this one. `above`: systemd, if `notify` is the service. */
static struct fd_store notify = {.fd = -1}, above = {.fd = -1};
static pthread_once_t once = PTHREAD_ONCE_INIT;

/*
 * How long a push waits for a keeper that does not read. After a time-out, pushes do not wait at
 * all until one succeeds, because attaches must not hang. A descriptor that was not pushed is only
 * missing if this process is killed.
 */
static const struct timeval send_timeout = {.tv_sec = 1};

static void store_connect(struct fd_store *s, const char *name)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	size_t bytes;

	if (name == NULL || name[0] == '\0')
		return;
	bytes = strlen(name);
	if (bytes >= sizeof(address.sun_path) || (name[0] != '/' && name[0] != '@')) {
		s->error = -EINVAL;
		return;
	}
	memcpy(address.sun_path, name, bytes);
	if (name[0] == '@')
		address.sun_path[0] = '\0';
	s->fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (s->fd < 0 ||
	    setsockopt(s->fd, SOL_SOCKET, SO_SNDTIMEO, &send_timeout, sizeof(send_timeout)) != 0 ||
	    connect(s->fd, (const struct sockaddr *)&address,
		    (socklen_t)(offsetof(struct sockaddr_un, sun_path) + bytes)) != 0)
		s->error = -errno;
}

static void connect_both(void)
{
	const char *prefix = getenv("HEADRACE_FDSTORE_PREFIX");

	store_connect(&notify, getenv("NOTIFY_SOCKET"));
	store_connect(&above, getenv("HEADRACE_FDSTORE"));
	snprintf(above.prefix, sizeof(above.prefix), "%s", prefix != NULL ? prefix : "");
}

static int store_send(struct fd_store *s, const char *text, int fd)
{
	int r;

	pthread_once(&once, connect_both);
	if (s->error != 0)
		return s->error;
	if (s->fd < 0)
		return 0;
	r = hr_send_fds(s->fd, text, strlen(text), &fd, fd >= 0,
			__atomic_load_n(&s->vain, __ATOMIC_RELAXED) ? MSG_DONTWAIT : 0);
	if (r == 0 || r == -EAGAIN)
		__atomic_store_n(&s->vain, r != 0, __ATOMIC_RELAXED);
	return r;
}

static bool is_name(const char *name)
{
	size_t n = strlen(name);

	return n > 0 && n <= NAME_MAX_BYTES &&
	       strspn(name, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-") ==
		   n;
}

/* Sends to `notify` and `above`. Returns the result of `notify`. */
static int send_both(const char *what, const char *name, int fd)
{
	char text[NAME_MAX_BYTES + 96];
	int r;

	snprintf(text, sizeof(text), "%s\nFDNAME=%s", what, name);
	r = store_send(&notify, text, fd);
	if (above.fd >= 0) {
		snprintf(text, sizeof(text), "%s\nFDNAME=%s%s", what, above.prefix, name);
		(void)store_send(&above, text, fd);
	}
	return r;
}

int hr_fdstore_push(const char *name, int fd)
{
	return is_name(name) && fd >= 0 ? send_both("FDSTORE=1\nFDPOLL=0", name, fd) : -EINVAL;
}

int hr_fdstore_remove(const char *name)
{
	return is_name(name) ? send_both("FDSTOREREMOVE=1", name, -1) : -EINVAL;
}

int hr_fdstore_notify(const char *text)
{
	return store_send(&notify, text, -1);
}

/* Returns the number of inherited descriptors. 0 if LISTEN_PID names another process. */
static long inherited_count(void)
{
	const char *pid = getenv("LISTEN_PID"), *fds = getenv("LISTEN_FDS");
	char *end;
	long n;

	if (pid == NULL || fds == NULL || strtol(pid, &end, 10) != getpid() || *end != '\0')
		return 0;
	n = strtol(fds, &end, 10);
	return *end == '\0' && n > 0 && n < (1 << 20) ? n : 0;
}

int hr_fdstore_inherit(struct hr_inherited **ret, size_t *ret_n)
{
	long n = inherited_count();
	const char *names = getenv("LISTEN_FDNAMES");
	struct hr_inherited *list = NULL;

	if (n > 0) {
		list = calloc((size_t)n, sizeof(*list));
		if (list == NULL)
			return -ENOMEM;
	}
	for (long i = 0; i < n; i++) {
		size_t length = names != NULL ? strcspn(names, ":") : 0;

		list[i].fd = LISTEN_FDS_START + (int)i;
		list[i].name = length > 0 ? strndup(names, length) : strdup("unknown");
		if (list[i].name == NULL || fcntl(list[i].fd, F_SETFD, FD_CLOEXEC) != 0) {
			int r = list[i].name == NULL ? -ENOMEM : -errno;

			hr_fdstore_inherited_free(list, (size_t)i + 1);
			return r;
		}
		if (names != NULL)
			names += length + (names[length] == ':');
	}
	*ret = list;
	*ret_n = (size_t)n;
	return 0;
}

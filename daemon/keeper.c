/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/keeper.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "common/now.h"

#define LISTEN_FDS_START 3
#define EXIT_GIVEN_UP	 70

struct kept {
	char *name;
	int fd;
};

struct keeper {
	const struct hr_keeper_config *config;
	int notify_fd;
	int signal_fd;
	char notify_name[sizeof(((struct sockaddr_un *)0)->sun_path)];
	pid_t worker;
	bool ready;
	bool stopping; /* SIGTERM came: whatever ends the worker now, it stays ended */
	struct kept *kept;
	size_t n_kept, max_kept;
	uint64_t restarts_ns[HR_KEEPER_RESTARTS]; /* times of the last ones, a ring */
	unsigned n_restarts;
};

void hr_keeper_quiet(void)
{
	const char *log = getenv("HEADRACE_DAEMON_LOG");
	int fd = log != NULL ? open(log, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600) : -1;

	if (fd < 0)
		fd = open("/dev/null", O_RDWR | O_CLOEXEC);
	if (fd < 0)
		return;
	dup2(fd, STDERR_FILENO);
	close(fd);
}

/* ---- the store of descriptors ---------------------------------------------------------------- */

static void kept_remove(struct keeper *k, const char *name)
{
	for (size_t i = 0; i < k->n_kept; i++) {
		if (strcmp(k->kept[i].name, name) != 0)
			continue;
		close(k->kept[i].fd);
		free(k->kept[i].name);
		k->kept[i] = k->kept[--k->n_kept];
		return;
	}
}

/* Takes fd, or closes it. */
static void kept_add(struct keeper *k, const char *name, int fd)
{
	char *copy;

	kept_remove(k, name);
	if (k->n_kept == k->max_kept && k->n_kept < HR_KEEPER_MAX_FDS) {
		size_t max = k->max_kept == 0 ? 64 : 2 * k->max_kept;
		struct kept *grown = realloc(k->kept, max * sizeof(*grown));

		if (grown != NULL) {
			k->kept = grown;
			k->max_kept = max;
		}
	}
	copy = k->n_kept < k->max_kept ? strdup(name) : NULL;
	if (copy == NULL) {
		close(fd);
		return;
	}
	k->kept[k->n_kept++] = (struct kept){.name = copy, .fd = fd};
}

/* ---- notifications --------------------------------------------------------------------------- */

/* An abstract datagram socket with a name of the kernel's choice. */
static int notify_open(struct keeper *k)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	socklen_t bytes = sizeof(address);
	int on = 1;

	k->notify_fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (k->notify_fd < 0 ||
	    setsockopt(k->notify_fd, SOL_SOCKET, SO_PASSCRED, &on, sizeof(on)) != 0 ||
	    bind(k->notify_fd, (struct sockaddr *)&address, sizeof(sa_family_t)) != 0 ||
	    getsockname(k->notify_fd, (struct sockaddr *)&address, &bytes) != 0)
		return -errno;
	snprintf(k->notify_name, sizeof(k->notify_name), "@%.*s",
		 (int)(bytes - offsetof(struct sockaddr_un, sun_path) - 1), address.sun_path + 1);
	return 0;
}

/* The value of `key` in a notification's lines, as a new string; NULL when absent. */
static char *notify_value(const char *text, const char *key)
{
	size_t n = strlen(key);

	for (const char *line = text; line != NULL; line = strchr(line, '\n')) {
		line += *line == '\n';
		if (strncmp(line, key, n) == 0 && line[n] == '=')
			return strndup(line + n + 1, strcspn(line + n + 1, "\n"));
	}
	return NULL;
}

static bool notify_has(const char *text, const char *key, const char *want)
{
	char *value = notify_value(text, key);
	bool has = value != NULL && strcmp(value, want) == 0;

	free(value);
	return has;
}

static void handle_notification(struct keeper *k, const char *text, int fd)
{
	char *name = notify_value(text, "FDNAME");

	if (fd >= 0 && name != NULL && notify_has(text, "FDSTORE", "1"))
		kept_add(k, name, fd);
	else if (fd >= 0)
		close(fd);
	if (name != NULL && notify_has(text, "FDSTOREREMOVE", "1"))
		kept_remove(k, name);
	free(name);
	if (!k->ready && notify_has(text, "READY", "1")) {
		k->ready = true;
		if (write(STDERR_FILENO, "ready\n", 6) == 6)
			hr_keeper_quiet();
	}
}

/* One datagram. False when there is none. */
static bool read_notification(struct keeper *k)
{
	char text[4096];
	union {
		struct cmsghdr hdr;
		char bytes[CMSG_SPACE(sizeof(struct ucred)) + CMSG_SPACE(4 * sizeof(int))];
	} control;
	struct iovec iov = {.iov_base = text, .iov_len = sizeof(text) - 1};
	struct msghdr msg = {.msg_iov = &iov,
			     .msg_iovlen = 1,
			     .msg_control = control.bytes,
			     .msg_controllen = sizeof(control.bytes)};
	ssize_t n = recvmsg(k->notify_fd, &msg, MSG_CMSG_CLOEXEC);
	pid_t from = 0;
	int fd = -1;

	if (n < 0)
		return errno == EINTR;
	text[n] = '\0';
	for (struct cmsghdr *c = CMSG_FIRSTHDR(&msg); c != NULL; c = CMSG_NXTHDR(&msg, c)) {
		if (c->cmsg_level == SOL_SOCKET && c->cmsg_type == SCM_CREDENTIALS) {
			from = ((struct ucred *)CMSG_DATA(c))->pid;
		} else if (c->cmsg_level == SOL_SOCKET && c->cmsg_type == SCM_RIGHTS) {
			size_t count = (c->cmsg_len - CMSG_LEN(0)) / sizeof(int);

			for (size_t i = 0; i < count; i++) {
				if (fd >= 0)
					close(fd);
				memcpy(&fd, CMSG_DATA(c) + i * sizeof(int), sizeof(int));
			}
		}
	}
	if (from == k->worker)
		handle_notification(k, text, fd);
	else if (fd >= 0)
		close(fd);
	return true;
}

/* ---- workers --------------------------------------------------------------------------------- */

/*
 * In the child: stored descriptors to 3, 4, ... and the listening sockets behind them; returns the
 * number of the first of these. Exits on failure.
 */
static int pass_descriptors(struct keeper *k)
{
	int n = (int)k->n_kept, first = LISTEN_FDS_START + n,
	    above = first + (int)HR_KEEPER_LISTENING;
	int listening[HR_KEEPER_LISTENING];

	for (int i = 0; i < n; i++) {
		k->kept[i].fd = fcntl(k->kept[i].fd, F_DUPFD_CLOEXEC, above);
		if (k->kept[i].fd < 0)
			_exit(EXIT_GIVEN_UP);
	}
	for (unsigned i = 0; i < HR_KEEPER_LISTENING; i++)
		listening[i] = fcntl(k->config->listening[i], F_DUPFD_CLOEXEC, above);
	for (int i = 0; i < n; i++)
		if (dup2(k->kept[i].fd, LISTEN_FDS_START + i) < 0)
			_exit(EXIT_GIVEN_UP);
	for (unsigned i = 0; i < HR_KEEPER_LISTENING; i++)
		if (listening[i] < 0 || dup2(listening[i], first + (int)i) < 0)
			_exit(EXIT_GIVEN_UP);
	return first;
}

static void set_variables(struct keeper *k)
{
	size_t bytes = 1;
	char number[24], *names, *to;

	for (size_t i = 0; i < k->n_kept; i++)
		bytes += strlen(k->kept[i].name) + 1;
	names = to = calloc(1, bytes);
	if (names == NULL)
		_exit(EXIT_GIVEN_UP);
	for (size_t i = 0; i < k->n_kept; i++) {
		size_t n = strlen(k->kept[i].name);

		if (i > 0)
			*to++ = ':';
		memcpy(to, k->kept[i].name, n);
		to += n;
	}
	snprintf(number, sizeof(number), "%zu", k->n_kept);
	/* NOLINTBEGIN(concurrency-mt-unsafe): a keeper has one thread, its child no other either */
	setenv("LISTEN_FDS", number, 1);
	snprintf(number, sizeof(number), "%d", getpid());
	setenv("LISTEN_PID", number, 1);
	setenv("LISTEN_FDNAMES", names, 1);
	setenv("NOTIFY_SOCKET", k->notify_name, 1);
	/* NOLINTEND(concurrency-mt-unsafe) */
	free(names);
}

static void exec_worker(struct keeper *k)
{
	size_t n = 0;
	char number[12], **argv;
	sigset_t none;

	while (k->config->argv[n] != NULL)
		n++;
	argv = calloc(n + 2, sizeof(*argv));
	if (argv == NULL)
		_exit(EXIT_GIVEN_UP);
	set_variables(k);
	snprintf(number, sizeof(number), "%d", pass_descriptors(k));
	memcpy(argv, k->config->argv, n * sizeof(*argv));
	argv[n] = number;
	sigemptyset(&none);
	pthread_sigmask(SIG_SETMASK, &none, NULL);
	execv(k->config->exe, argv);
	_exit(EXIT_GIVEN_UP);
}

static int start_worker(struct keeper *k)
{
	k->worker = fork();
	if (k->worker < 0)
		return -errno;
	if (k->worker == 0)
		exec_worker(k);
	return 0;
}

/* Were all allowed restarts used within the period? */
static bool restarts_used_up(struct keeper *k)
{
	uint64_t now = hr_now_ns(CLOCK_BOOTTIME),
		 *slot = &k->restarts_ns[k->n_restarts++ % HR_KEEPER_RESTARTS];
	bool used_up = *slot != 0 && now - *slot < HR_KEEPER_PERIOD_NS;

	*slot = now;
	return used_up;
}

/* Returns true when the keeper is to end, with *ret_status. */
static bool reap_worker(struct keeper *k, int *ret_status)
{
	int status;

	if (waitpid(k->worker, &status, WNOHANG) != k->worker)
		return false;
	while (read_notification(k))
		; /* what it said before it died */
	if (WIFEXITED(status)) {
		*ret_status = WEXITSTATUS(status);
		return true;
	}
	if (k->stopping || restarts_used_up(k) || start_worker(k) < 0) {
		*ret_status = EXIT_GIVEN_UP;
		return true;
	}
	return false;
}

static bool handle_signals(struct keeper *k, int *ret_status)
{
	struct signalfd_siginfo info;

	while (read(k->signal_fd, &info, sizeof(info)) == (ssize_t)sizeof(info)) {
		if (info.ssi_signo == SIGTERM) {
			k->stopping = true;
			kill(k->worker, SIGTERM);
		}
	}
	return reap_worker(k, ret_status);
}

static int keeper_init(struct keeper *k)
{
	struct rlimit files;
	sigset_t set;

	if (getrlimit(RLIMIT_NOFILE, &files) == 0 && files.rlim_cur < files.rlim_max) {
		files.rlim_cur = files.rlim_max;
		setrlimit(RLIMIT_NOFILE, &files);
	}
	signal(SIGPIPE, SIG_IGN);
	signal(SIGHUP, SIG_IGN);
	signal(SIGINT, SIG_IGN);
	signal(SIGXFSZ,
	       SIG_IGN); /* over the limit of a file's size: a store error like a full disk */
	signal(SIGCHLD, SIG_DFL); /* ignored, as we may have inherited it, it would never come */
	sigemptyset(&set);
	sigaddset(&set, SIGCHLD);
	sigaddset(&set, SIGTERM);
	pthread_sigmask(SIG_BLOCK, &set, NULL);
	k->signal_fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	if (k->signal_fd < 0)
		return -errno;
	return notify_open(k);
}

static void keeper_done(struct keeper *k)
{
	for (size_t i = 0; i < k->n_kept; i++) {
		free(k->kept[i].name);
		close(k->kept[i].fd);
	}
	free(k->kept);
	close(k->notify_fd);
	close(k->signal_fd);
}

int hr_keeper_run(const struct hr_keeper_config *config)
{
	struct keeper k = {.config = config, .notify_fd = -1, .signal_fd = -1};
	int status = EXIT_GIVEN_UP, r = keeper_init(&k);
	bool over = r < 0 || start_worker(&k) < 0;

	while (!over) {
		struct pollfd fds[] = {{.fd = k.notify_fd, .events = POLLIN},
				       {.fd = k.signal_fd, .events = POLLIN}};

		if (poll(fds, 2, -1) < 0)
			continue;
		while (read_notification(&k))
			;
		over = handle_signals(&k, &status);
	}
	keeper_done(&k);
	return status;
}

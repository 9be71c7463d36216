/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/run/run.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cli/cli.h"

#define JOIN_TIMEOUT_MS	  30000 /* long, because headraced may have to replay a journal */
#define ANSWER_TIMEOUT_MS 60000 /* long, because headraced may write to a slow file system */
#define MAX_REJOINS	  32u

/* ---- starting the daemon ---- */

/* Runs in the child process. Turns the shim off, because headraced must not record itself. */
static void become_daemon(const char *headraced, int config_fd, int ready_fd, char *const argv[])
{
	int null;

	setsid();
	if (fork() != 0)
		_exit(0);
	null = open("/dev/null", O_RDWR | O_CLOEXEC);
	dup2(config_fd, STDIN_FILENO);
	dup2(null, STDOUT_FILENO);
	dup2(ready_fd, STDERR_FILENO);
	/* NOLINTBEGIN(concurrency-mt-unsafe): `headrace run` has one thread */
	setenv("HEADRACE", "off", 1);
	unsetenv("LD_PRELOAD");
	/* NOLINTEND(concurrency-mt-unsafe) */
	if (chdir("/") != 0)
		_exit(1);
	execv(headraced, argv);
	dprintf(STDERR_FILENO, "%s: %s\n", headraced, strerrordesc_np(errno));
	_exit(1);
}

/* Writes the configuration to a memfd, which the keeper and each recording process read. */
static int config_file(const struct hr_private_config *config, int *ret_fd)
{
	int fd = memfd_create("headraced-config", MFD_CLOEXEC), r;

	if (fd < 0)
		return -errno;
	r = hr_private_config_write(config, fd);
	if (r < 0)
		close(fd);
	else
		*ret_fd = fd;
	return r;
}

/* Waits until headraced writes "ready\n". If headraced ends, *ret_error is its output. */
static int await_ready(int fd, char **ret_error)
{
	char text[4096];
	size_t used = 0;
	ssize_t n;

	while ((n = read(fd, text + used, sizeof(text) - 1 - used)) > 0) {
		used += (size_t)n;
		text[used] = '\0';
		if (used >= 6 && strcmp(text + used - 6, "ready\n") == 0)
			return 0;
		if (used == sizeof(text) - 1)
			break;
	}
	while (used > 0 && text[used - 1] == '\n')
		used--;
	*ret_error = used > 0 ? strndup(text, used) : strdup("headraced ended before it was ready");
	return -ECHILD;
}

static int start_daemon(const char *headraced, const struct hr_private_config *config,
			char **ret_error)
{
	char *argv[] = {(char[]){"headraced"}, (char[]){"private"}, strdup(config->node.store),
			strdup(config->node.id.job), NULL};
	int config_fd = -1, ready[2] = {-1, -1}, r = config_file(config, &config_fd);
	pid_t child;

	if (r == 0 && (argv[2] == NULL || argv[3] == NULL))
		r = -ENOMEM;
	if (r == 0 && pipe2(ready, O_CLOEXEC) != 0)
		r = -errno;
	if (r == 0) {
		child = fork();
		if (child == 0)
			become_daemon(headraced, config_fd, ready[1], argv);
		if (child < 0)
			r = -errno;
		else
			waitpid(child, NULL, 0);
	}
	close(ready[1]);
	if (r == 0)
		r = await_ready(ready[0], ret_error);
	close(ready[0]);
	close(config_fd);
	free(argv[2]);
	free(argv[3]);
	return r;
}

/* ---- joining ---- */

static int send_join(struct hr_link *link, char **ret_error)
{
	Headrace__Join join = HEADRACE__JOIN__INIT;

	(void)ret_error;
	join.version = HR_CONTROL_VERSION;
	join.pid = getpid();
	join.has_rank = link->rank >= 0;
	join.rank = (uint32_t)link->rank;
	return hr_control_send(link->fd, HR_CONTROL(JOIN), &join.base);
}

static int link_receive(struct hr_link *link, int timeout_ms)
{
	Headrace__Control *m;
	int r = hr_control_wait(link->fd, timeout_ms, &m);

	if (r == 0) {
		hr_control_free(link->last);
		link->last = m;
	}
	return r;
}

static bool last_is(const struct hr_link *link, hr_control_kind kind)
{
	return link->last != NULL && link->last->kind_case == kind;
}

static int await_joined(struct hr_link *link, char **ret_error)
{
	int r = link_receive(link, JOIN_TIMEOUT_MS);

	if (r < 0)
		return r;
	if (last_is(link, HR_CONTROL(JOINED)) && link->last->joined->version == HR_CONTROL_VERSION)
		return 0;
	*ret_error = strdup(last_is(link, HR_CONTROL(ERROR)) ? link->last->error->text
							     : "unexpected answer from headraced");
	return -EPROTO;
}

static int join_and_wait(struct hr_link *link, char **ret_error)
{
	int r = send_join(link, ret_error);

	return r < 0 ? r : await_joined(link, ret_error);
}

static bool hung_up(int r)
{
	return r == -ECONNRESET || r == -EPIPE;
}

/*
 * Joins again if the recording process has died (`r`: the error of the last attempt), and repeats
 * this if the next one dies, too. The socket of the keeper accepts a connection at once, and the
 * next recording process answers.
 */
static int join_next(struct hr_link *link, int r, int (*join)(struct hr_link *, char **),
		     char **ret_error)
{
	while (hung_up(r) && link->rejoins++ < MAX_REJOINS) {
		if (link->fd >= 0)
			close(link->fd);
		link->fd = -1;
		r = hr_control_connect(link->names.control, &link->fd);
		if (r == 0)
			r = join(link, ret_error);
	}
	return r;
}

/* Call it with the lock held, so that no other `headrace run` starts or ends this headraced. */
static int join_or_start(struct hr_link *link, const struct hr_private_config *config,
			 const char *headraced, char **ret_error)
{
	int r = hr_control_connect(config->names.control, &link->fd);

	if (r == -ENOENT || r == -ECONNREFUSED) {
		r = start_daemon(headraced, config, ret_error);
		if (r == 0)
			r = hr_control_connect(config->names.control, &link->fd);
		if (r < 0)
			hr_private_remove(&config->names);
	}
	if (r == 0)
		r = join_and_wait(link, ret_error);
	return join_next(link, r, join_and_wait, ret_error);
}

int hr_link_open(struct hr_link *link, struct hr_private_config *config, int rank,
		 const char *headraced, char **ret_error)
{
	int lock = -1, r;

	*link = (struct hr_link){.fd = -1, .rank = rank};
	r = hr_private_names(config->node.store, config->node.id.job, &config->names, ret_error);
	if (r == 0)
		r = hr_private_lock(&config->names, &lock);
	if (r < 0)
		return r;
	link->names = config->names;
	r = join_or_start(link, config, headraced, ret_error);
	close(lock);
	if (r < 0) {
		hr_link_close(link);
		return r;
	}
	link->state = HR_LINK_LINKED;
	return 0;
}

/* ---- while CMD runs ---- */

static void send_started(struct hr_link *link)
{
	Headrace__Started started = HEADRACE__STARTED__INIT;

	started.pid = link->cmd;
	hr_control_send(link->fd, HR_CONTROL(STARTED), &started.base);
}

void hr_link_started(struct hr_link *link, pid_t cmd)
{
	link->cmd = cmd;
	if (link->state == HR_LINK_LINKED)
		send_started(link);
}

/* Joins the next recording process after one has died. hr_link_read receives the answer. */
static void rejoin(struct hr_link *link)
{
	link->state = HR_LINK_REJOINING;
	if (join_next(link, -EPIPE, send_join, NULL) == 0)
		return;
	hr_link_close(link);
	link->state = HR_LINK_GONE;
	if (link->leaving)
		return;
	hr_report(
	    "headraced ended and was not restarted: CMD continues, but is no longer recorded");
}

/* Reads one message or the end of the connection. Returns false if nothing is left to read. */
static bool read_one(struct hr_link *link)
{
	int r = link_receive(link, 0);

	if (r == -ETIMEDOUT || r == -EAGAIN || r == -EINTR)
		return false;
	if (r < 0) {
		rejoin(link);
		return false;
	}
	if (last_is(link, HR_CONTROL(NOTICE))) {
		hr_report("%s", link->last->notice->text);
	} else if (link->state == HR_LINK_REJOINING && last_is(link, HR_CONTROL(JOINED))) {
		link->state = HR_LINK_LINKED;
		if (link->cmd > 0)
			send_started(link);
	}
	return true;
}

void hr_link_read(struct hr_link *link)
{
	while (link->fd >= 0 && read_one(link) && !last_is(link, HR_CONTROL(LEFT)))
		;
}

/* ---- leaving ---- */

static int send_leave(struct hr_link *link, uint64_t linger_ns, int status)
{
	Headrace__Leave leave = HEADRACE__LEAVE__INIT;

	leave.linger_ms = linger_ns / 1000000u;
	if (WIFSIGNALED(status))
		leave.signal = (uint32_t)WTERMSIG(status);
	else
		leave.status = (uint32_t)WEXITSTATUS(status);
	return hr_control_send(link->fd, HR_CONTROL(LEAVE), &leave.base);
}

static void drain_interrupts(int interrupt_fd)
{
	struct signalfd_siginfo info;

	while (read(interrupt_fd, &info, sizeof(info)) == (ssize_t)sizeof(info))
		;
}

/*
 * Sends `leave` once per connection (*sent_fd is the last one), and waits for headraced or an
 * interrupt. An interrupt sets *linger_ns to 0 or, if it is 0 already, causes -EINTR. Returns 1 if
 * `left` has arrived, 0 to call it again.
 */
static int leave_step(struct hr_link *link, uint64_t *linger_ns, int status, int interrupt_fd,
		      int *sent_fd)
{
	struct pollfd fds[] = {{.events = POLLIN}, {.fd = interrupt_fd, .events = POLLIN}};
	int n, before = link->fd;

	if (link->state == HR_LINK_LINKED && *sent_fd != link->fd) {
		*sent_fd = link->fd;
		send_leave(link, *linger_ns, status);
	}
	fds[0].fd = link->fd;
	n = poll(fds, 2, (int)(*linger_ns / 1000000u) + ANSWER_TIMEOUT_MS);
	if (n == 0)
		return -ETIMEDOUT;
	if (n > 0 && fds[1].revents != 0) {
		drain_interrupts(interrupt_fd);
		if (*linger_ns == 0)
			return -EINTR;
		*linger_ns = 0;
		*sent_fd = -1;
	}
	if (n > 0 && fds[0].revents != 0) {
		hr_link_read(link);
		if (link->fd == before && last_is(link, HR_CONTROL(LEFT)))
			return 1;
		if (link->state == HR_LINK_REJOINING)
			*sent_fd = -1;
	}
	return 0;
}

int hr_link_leave(struct hr_link *link, uint64_t linger_ns, int status, int interrupt_fd)
{
	int sent_fd = -1, r = 0;

	link->leaving = true;
	while (r == 0)
		r = link->fd >= 0 ? leave_step(link, &linger_ns, status, interrupt_fd, &sent_fd)
				  : -ECONNRESET;
	/* headraced continues to send messages if it drains a spool (run_uplink.c). */
	if (r < 0 || !link->last->left->drains)
		hr_link_close(link);
	return r < 0 ? r : 0;
}

void hr_link_close(struct hr_link *link)
{
	if (link->fd >= 0)
		close(link->fd);
	link->fd = -1;
	link->state = HR_LINK_CLOSED;
}

void hr_link_done(struct hr_link *link)
{
	hr_link_close(link);
	hr_control_free(link->last);
	link->last = NULL;
}

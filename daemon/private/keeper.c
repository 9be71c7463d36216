/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/private/keeper.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "common/host.h"
#include "common/now.h"
#include "daemon/private/kept.h"

#define EXIT_GIVEN_UP 70

struct keeper {
	const struct hr_keeper_config *config;
	struct hr_notify notify;
	int signal_fd;
	pid_t worker;
	bool ready;
	bool stopping; /* after SIGTERM: a recording process that ends is not restarted */
	bool over;
	int status; /* exit status of the keeper */
	struct hr_kept kept;
	uint64_t restarts_ns[HR_KEEPER_RESTARTS];
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

/* ---- notifications --------------------------------------------------------------------------- */

static void apply_notification(struct keeper *k, struct hr_notice *notice)
{
	if (notice->from != k->worker) {
		if (notice->fd >= 0)
			close(notice->fd);
		return;
	}
	hr_kept_take(&k->kept, notice);
	if (!k->ready && hr_notice_has(notice, "READY", "1")) {
		k->ready = true;
		if (write(STDERR_FILENO, "ready\n", 6) == 6)
			hr_keeper_quiet();
	}
}

/* Reads and applies all datagrams of the recording process. Returns 0 or -errno. */
static int read_notifications(struct keeper *k)
{
	struct hr_notice notice;
	int r;

	while ((r = hr_notify_read(&k->notify, &notice)) == 0)
		apply_notification(k, &notice);
	return r == -EAGAIN ? 0 : r;
}

/* ---- recording processes --------------------------------------------------------------------- */

static int start_worker(struct keeper *k)
{
	k->worker = fork();
	if (k->worker < 0)
		return -errno;
	if (k->worker == 0)
		hr_kept_exec(&k->kept, &k->notify, k->config->exe, k->config->argv,
			     k->config->listening, HR_KEEPER_LISTENING);
	return 0;
}

/* Returns whether the last HR_KEEPER_RESTARTS restarts were all within the period. */
static bool restarts_used_up(struct keeper *k)
{
	uint64_t now = hr_now_ns(CLOCK_BOOTTIME),
		 *slot = &k->restarts_ns[k->n_restarts++ % HR_KEEPER_RESTARTS];
	bool used_up = *slot != 0 && now - *slot < HR_KEEPER_PERIOD_NS;

	*slot = now;
	return used_up;
}

/* Handles the end of the recording process. Sets k->over if the keeper must end. */
static int reap_worker(struct keeper *k)
{
	int status, r;
	pid_t ended = waitpid(k->worker, &status, WNOHANG);

	if (ended <= 0)
		return ended < 0 ? -errno : 0;
	r = read_notifications(k); /* these datagrams were sent before the end */
	k->worker = -1;
	k->over =
	    r < 0 || WIFEXITED(status) || k->stopping || restarts_used_up(k) || start_worker(k) < 0;
	if (WIFEXITED(status))
		k->status = WEXITSTATUS(status);
	return r;
}

static int handle_signals(struct keeper *k)
{
	struct signalfd_siginfo info;

	while (read(k->signal_fd, &info, sizeof(info)) == (ssize_t)sizeof(info)) {
		if (info.ssi_signo == SIGTERM) {
			k->stopping = true;
			kill(k->worker, SIGTERM);
		}
	}
	return errno == EAGAIN ? reap_worker(k) : -errno;
}

/* Waits for notifications and signals, and handles them. Returns 0 or -errno. */
static int keeper_step(struct keeper *k)
{
	struct pollfd fds[] = {{.fd = k->notify.fd, .events = POLLIN},
			       {.fd = k->signal_fd, .events = POLLIN}};
	int r;

	if (poll(fds, 2, -1) < 0)
		return errno == EINTR ? 0 : -errno;
	r = read_notifications(k);
	return r < 0 ? r : handle_signals(k);
}

static int keeper_init(struct keeper *k)
{
	sigset_t set;
	int r;

	(void)hr_host_raise_files();
	signal(SIGPIPE, SIG_IGN);
	signal(SIGHUP, SIG_IGN);
	signal(SIGINT, SIG_IGN);
	signal(SIGXFSZ, SIG_IGN); /* write() beyond the file size limit then fails with EFBIG */
	signal(SIGCHLD, SIG_DFL); /* if the parent had set SIG_IGN, no SIGCHLD would come */
	sigemptyset(&set);
	sigaddset(&set, SIGCHLD);
	sigaddset(&set, SIGTERM);
	r = pthread_sigmask(SIG_BLOCK, &set, NULL);
	if (r != 0)
		return -r;
	k->signal_fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	if (k->signal_fd < 0)
		return -errno;
	return hr_notify_open(&k->notify);
}

static void keeper_done(struct keeper *k)
{
	hr_kept_done(&k->kept);
	hr_notify_close(&k->notify);
	close(k->signal_fd);
}

int hr_keeper_run(const struct hr_keeper_config *config)
{
	struct keeper k = {.config = config,
			   .notify.fd = -1,
			   .signal_fd = -1,
			   .worker = -1,
			   .status = EXIT_GIVEN_UP};
	int r = keeper_init(&k);

	if (r == 0)
		r = start_worker(&k);
	while (r == 0 && !k.over)
		r = keeper_step(&k);
	if (r < 0)
		fprintf(stderr, "headraced: cannot watch the recording process: %s\n",
			strerrordesc_np(-r));
	/* Without a keeper, a recording process could wait for a run that does not come. */
	if (k.worker > 0)
		kill(k.worker, SIGTERM);
	keeper_done(&k);
	return k.status;
}

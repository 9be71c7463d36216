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

/* Reads and applies one datagram of the recording process. False: there is no datagram. */
static bool read_notification(struct keeper *k)
{
	struct hr_notice notice;

	if (!hr_notify_read(&k->notify, &notice))
		return false;
	if (notice.from != k->worker) {
		if (notice.fd >= 0)
			close(notice.fd);
		return true;
	}
	hr_kept_take(&k->kept, &notice);
	if (!k->ready && hr_notice_has(&notice, "READY", "1")) {
		k->ready = true;
		if (write(STDERR_FILENO, "ready\n", 6) == 6)
			hr_keeper_quiet();
	}
	return true;
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

/* Handles the end of the recording process. True: the keeper must end with *ret_status. */
static bool reap_worker(struct keeper *k, int *ret_status)
{
	int status;

	if (waitpid(k->worker, &status, WNOHANG) != k->worker)
		return false;
	while (read_notification(k))
		; /* these datagrams were sent before the end */
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
	sigset_t set;

	(void)hr_host_raise_files();
	signal(SIGPIPE, SIG_IGN);
	signal(SIGHUP, SIG_IGN);
	signal(SIGINT, SIG_IGN);
	signal(SIGXFSZ, SIG_IGN); /* write() beyond the file size limit then fails with EFBIG */
	signal(SIGCHLD, SIG_DFL); /* if the parent had set SIG_IGN, no SIGCHLD would come */
	sigemptyset(&set);
	sigaddset(&set, SIGCHLD);
	sigaddset(&set, SIGTERM);
	pthread_sigmask(SIG_BLOCK, &set, NULL);
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
	struct keeper k = {.config = config, .notify.fd = -1, .signal_fd = -1};
	int status = EXIT_GIVEN_UP, r = keeper_init(&k);
	bool over = r < 0 || start_worker(&k) < 0;

	while (!over) {
		struct pollfd fds[] = {{.fd = k.notify.fd, .events = POLLIN},
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

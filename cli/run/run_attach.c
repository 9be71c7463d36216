/* SPDX-License-Identifier: Apache-2.0 */
/* run_attach.c - `headrace run --attach`, with which headrace.record() records a running program */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "cli/cli.h"
#include "cli/run/run.h"

/* Prints the variables that the program sets for its later children, each with a NUL, and a NUL. */
static int print_variables(const struct hr_run_state *run)
{
	printf("HEADRACE_SOCKET=%s%c", run->config.names.shim, '\0');
	printf("HEADRACE_STORE=%s%c", run->store, '\0');
	printf("HEADRACE_JOB=%s%c%c", run->job.id, '\0', '\0');
	return fflush(stdout) == 0 ? 0 : -errno;
}

int hr_run_attach(struct hr_run_state *run)
{
	pid_t program = getppid();
	int pidfd = (int)syscall(SYS_pidfd_open, program, 0), r;
	struct pollfd fds[] = {{.fd = STDIN_FILENO, .events = POLLIN},
			       {.fd = run->child.signal_fd, .events = POLLIN},
			       {.fd = run->link.fd, .events = POLLIN},
			       {.fd = pidfd, .events = POLLIN}};

	signal(SIGPIPE, SIG_IGN);
	hr_link_started(&run->link, program);
	r = print_variables(run);
	while (r == 0) {
		fds[2].fd = run->link.fd;
		if (poll(fds, 4, -1) < 0)
			continue;
		if (fds[2].revents != 0)
			hr_link_read(&run->link);
		if ((fds[0].revents | fds[1].revents | fds[3].revents) != 0)
			break;
	}
	if (pidfd >= 0)
		close(pidfd);
	hr_run_finish(run);
	return r < 0 ? HR_EXIT_STORE_FAILED : 0;
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/base/exit.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/procfs.h"

/* Data of PIDFD_GET_INFO (Linux 6.15, <linux/pidfd.h>), up to the exit status. */
struct info {
	uint64_t mask; /* in: requested fields; out: available fields */
	uint64_t cgroup;
	uint32_t ids[11];
	int32_t exit_code; /* as of wait(2); available when the process has been reaped */
};
_Static_assert(sizeof(struct info) == 64, "PIDFD_INFO_SIZE_VER0");
#define GET_INFO  _IOWR(0xFF, 11, struct info)
#define INFO_EXIT (UINT64_C(1) << 3)

/*
 * Returns whether this process may read the exe link, and so the exit code (otherwise shown as 0).
 */
static bool exit_code_visible(pid_t pid)
{
	char name[48], target[8];

	snprintf(name, sizeof(name), "/proc/%d/exe", (int)pid);
	return readlink(name, target, sizeof(target)) >= 0 || errno != EACCES;
}

static int read_zombie(int pidfd, pid_t pid, int *ret)
{
	struct hr_procstat stat;

	if (hr_procstat_read(pid, &stat) || stat.state != 'Z' ||
	    (stat.exit_code == 0 && !exit_code_visible(pid)))
		return -1;
	/* Succeeds if the process is not reaped. Then /proc/PID was that of this process. */
	if (syscall(SYS_pidfd_send_signal, pidfd, 0, NULL, 0) < 0)
		return -1;
	*ret = stat.exit_code;
	return 0;
}

/* Reads the exit status of a reaped process. The kernel keeps it until all pidfds are closed. */
static int read_reaped(int pidfd, int *ret)
{
	struct info info = {.mask = INFO_EXIT};

	if (ioctl(pidfd, GET_INFO, &info) < 0 || !(info.mask & INFO_EXIT))
		return -1;
	*ret = info.exit_code;
	return 0;
}

void hr_exit_text(int status, char ret[HR_EXIT_TEXT])
{
	const char *name;

	if (WIFEXITED(status)) {
		snprintf(ret, HR_EXIT_TEXT, "%d", WEXITSTATUS(status));
		return;
	}
	name = sigabbrev_np(WTERMSIG(status));
	if (name)
		snprintf(ret, HR_EXIT_TEXT, "SIG%s", name);
	else
		snprintf(ret, HR_EXIT_TEXT, "SIG%u", (unsigned)WTERMSIG(status) & 0x7f);
}

uint64_t hr_oom_kills(void)
{
	char text[16384];
	const char *line;

	if (hr_procfs_text("/proc/vmstat", text, sizeof(text)) == 0)
		return 0;
	line = strstr(text, "\noom_kill ");
	return line ? strtoull(line + strlen("\noom_kill "), NULL, 10) : 0;
}

bool hr_pidfd_ended(int pidfd)
{
	struct pollfd p = {.fd = pidfd, .events = POLLIN};

	return poll(&p, 1, 0) > 0;
}

void hr_exit_read(int pidfd, pid_t pid, char ret[HR_EXIT_TEXT])
{
	int status;

	ret[0] = 0;
	/* Both reads fail if the parent reaps the process between them, so try again. */
	for (unsigned tries = 0; tries < 3; tries++) {
		if (read_zombie(pidfd, pid, &status) == 0 || read_reaped(pidfd, &status) == 0) {
			hr_exit_text(status, ret);
			return;
		}
	}
}

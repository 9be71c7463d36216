/* SPDX-License-Identifier: Apache-2.0 */
/* exit.h - the end of a process that is not a child of this one. Any thread; never waits. */
#ifndef HEADRACE_DAEMON_BASE_EXIT_H
#define HEADRACE_DAEMON_BASE_EXIT_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#define HR_EXIT_TEXT 16u
/* Of a process that SIGKILL ended while the kernel killed processes, because memory was short. */
#define HR_EXIT_OOM "SIGKILL (oom)"

/* Returns whether the process has ended: then its pidfd is readable. */
bool hr_pidfd_ended(int pidfd);

/*
 * Reads the exit status of an ended process as text: "0".."255", "SIGKILL"...; "": unknown, because
 * the process was already reaped (before Linux 6.15).
 */
void hr_exit_read(int pidfd, pid_t pid, char ret[HR_EXIT_TEXT]);

/*
 * Returns how many processes of the node the kernel has killed since boot, because its memory or
 * that of a cgroup was short (/proc/vmstat). 0: unknown.
 */
uint64_t hr_oom_kills(void);

void hr_exit_text(int status, char ret[HR_EXIT_TEXT]);

#endif

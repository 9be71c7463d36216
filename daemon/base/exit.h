/* SPDX-License-Identifier: Apache-2.0 */
/* exit.h - the end of a process that is not a child of this one. Any thread; never waits. */
#ifndef HEADRACE_DAEMON_BASE_EXIT_H
#define HEADRACE_DAEMON_BASE_EXIT_H

#include <stdbool.h>
#include <sys/types.h>

#define HR_EXIT_TEXT 16u

/* Returns whether the process has ended: then its pidfd is readable. */
bool hr_pidfd_ended(int pidfd);

/*
 * Reads the exit status of an ended process as text: "0".."255", "SIGKILL"...; "": unknown, because
 * the process was already reaped (before Linux 6.15).
 */
void hr_exit_read(int pidfd, pid_t pid, char ret[HR_EXIT_TEXT]);

void hr_exit_text(int status, char ret[HR_EXIT_TEXT]);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * exit.h - how a process that is not our child ended
 *
 * Threads   Any. Never waits.
 */
#ifndef HEADRACE_DAEMON_BASE_EXIT_H
#define HEADRACE_DAEMON_BASE_EXIT_H

#include <sys/types.h>

#define HR_EXIT_TEXT 16u

/*
 * For a pidfd that is readable: "0".."255", "SIGKILL"..., or "" when nobody can tell any more: before Linux 6.15 once the parent
 * has reaped it.
 */
void hr_exit_read(int pidfd, pid_t pid, char ret[HR_EXIT_TEXT]);

/* A wait(2) status in the same words. */
void hr_exit_text(int status, char ret[HR_EXIT_TEXT]);

#endif

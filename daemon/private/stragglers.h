/* SPDX-License-Identifier: Apache-2.0 */
/*
 * stragglers.h - processes of a job that could still attach
 *
 * Purpose   A process attaches at its first operation on a tracked file. If the job ended while CMD
 *           has left such a process running, its operations would be lost without a count. The
 *           initial environment of such a process has HEADRACE_SOCKET with this daemon's socket.
 * Threads   Any; reads /proc, no state.
 */
#ifndef HEADRACE_DAEMON_PRIVATE_STRAGGLERS_H
#define HEADRACE_DAEMON_PRIVATE_STRAGGLERS_H

#include <stddef.h>
#include <sys/types.h>

/*
 * Live processes (no zombies, not the caller) whose environment has HEADRACE_SOCKET=`socket`:
 * stores at most max pids, returns how many there are. Processes of other users cannot be read and
 * do not count.
 */
size_t hr_stragglers(const char *socket, pid_t *pids, size_t max);

#endif

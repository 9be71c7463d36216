/* SPDX-License-Identifier: Apache-2.0 */
/*
 * stragglers.h - processes of a job that could still attach
 *
 * Purpose   A process attaches at its first operation on a tracked file. One that CMD left behind and
 *           that has not come so far would be missed without a word if the job ended under it.
 *           What it has inherited tells: HEADRACE_SOCKET in its initial environment names our socket.
 * Threads   Any; reads /proc, no state.
 */
#ifndef HEADRACE_DAEMON_PRIVATE_STRAGGLERS_H
#define HEADRACE_DAEMON_PRIVATE_STRAGGLERS_H

#include <stddef.h>
#include <sys/types.h>

/*
 * Live processes (no zombies, not the caller) whose environment says HEADRACE_SOCKET=`socket`: stores at
 * most max pids, returns how many there are. Processes of other users cannot be read and do not count.
 */
size_t hr_stragglers(const char *socket, pid_t *pids, size_t max);

#endif

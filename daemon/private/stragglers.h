/* SPDX-License-Identifier: Apache-2.0 */
/*
 * stragglers.h - processes of a job that could still attach
 *
 * A process attaches at its first operation on a tracked file. If CMD left such a process running,
 * and the job ended, its operations would be lost without a count. Its initial environment has
 * HEADRACE_SOCKET with this daemon's socket. Any thread; reads /proc.
 */
#ifndef HEADRACE_DAEMON_PRIVATE_STRAGGLERS_H
#define HEADRACE_DAEMON_PRIVATE_STRAGGLERS_H

#include <stddef.h>
#include <sys/types.h>

/*
 * Stores at most `max` pids of live processes (no zombies, not the caller) with
 * HEADRACE_SOCKET=`socket`, returns how many there are. Other users' processes cannot be read.
 */
size_t hr_stragglers(const char *socket, pid_t *pids, size_t max);

#endif

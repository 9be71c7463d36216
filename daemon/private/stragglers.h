/* SPDX-License-Identifier: Apache-2.0 */
/*
 * stragglers.h - processes of a job that could still attach
 *
 * A process attaches at its first operation on a tracked file. If CMD leaves a process that has not
 * attached, and the job ends, later operations would be lost without a count. So headraced searches
 * /proc for processes with HEADRACE_SOCKET of this daemon in their initial environment. Any thread.
 */
#ifndef HEADRACE_DAEMON_PRIVATE_STRAGGLERS_H
#define HEADRACE_DAEMON_PRIVATE_STRAGGLERS_H

#include <stddef.h>
#include <sys/types.h>

/*
 * Stores at most `max` pids of processes that have HEADRACE_SOCKET=`socket` (no zombies, not the
 * caller). Returns the number of all such processes. Skips processes of other users.
 */
size_t hr_stragglers(const char *socket, pid_t *pids, size_t max);

#endif

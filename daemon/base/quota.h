/* SPDX-License-Identifier: Apache-2.0 */
/* quota.h - how much CPU time the cgroups of a process allow. No state; any thread. */
#ifndef HEADRACE_DAEMON_BASE_QUOTA_H
#define HEADRACE_DAEMON_BASE_QUOTA_H

#include <stdint.h>
#include <sys/types.h>

/*
 * Returns the smallest CPU quota of the process's cgroup and its ancestors, in 1/1000 of a core:
 * cpu.max of version 2, cpu.cfs_quota_us of version 1. 0: no quota, or unknown. Users can make deep
 * cgroups, so only the 32 innermost ones are read. In a container, these are the cgroups that the
 * container shows.
 */
uint32_t hr_cpu_quota_milli(pid_t pid);

#endif

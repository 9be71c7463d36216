/* SPDX-License-Identifier: Apache-2.0 */
/* cgroup.h - folders and CPU quotas of cgroups. No state; any thread. */
#ifndef HEADRACE_DAEMON_BASE_CGROUP_H
#define HEADRACE_DAEMON_BASE_CGROUP_H

#include <stdint.h>
#include <sys/types.h>

/* Returns the mount point of version 2 (alone or together with version 1); NULL: there is none. */
const char *hr_cgroup_mount(void);

/*
 * Finds the id of a cgroup's folder, by which probes identify the processes of a job. Returns 0, an
 * error of open, -ENOTSUP (not version 2), or -EBUSY: this process is in the cgroup, and would
 * record itself. *ret_error (malloc'ed) explains the error.
 */
int hr_cgroup_id(const char *path, uint64_t *ret, char **ret_error);

/*
 * Returns the smallest CPU quota of the process's cgroup and its ancestors, in 1/1000 of a core:
 * cpu.max of version 2, cpu.cfs_quota_us of version 1. 0: no quota, or unknown. Users can make deep
 * cgroups, so only the 32 innermost ones are read. In a container, these are the cgroups that the
 * container shows.
 */
uint32_t hr_cpu_quota_milli(pid_t pid);

#endif

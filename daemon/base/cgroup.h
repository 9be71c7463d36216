/* SPDX-License-Identifier: Apache-2.0 */
/* cgroup.h - folders of the cgroup hierarchy (version 2). No state; any thread. */
#ifndef HEADRACE_DAEMON_BASE_CGROUP_H
#define HEADRACE_DAEMON_BASE_CGROUP_H

#include <stdint.h>

/* Returns the mount point of version 2 (alone or together with version 1); NULL: there is none. */
const char *hr_cgroup_mount(void);

/*
 * Finds the id of a cgroup's folder, by which probes identify the processes of a job. Returns 0, an
 * error of open, -ENOTSUP (not version 2), or -EBUSY: this process is in the cgroup, and would
 * record itself. *ret_error (malloc'ed) explains the error.
 */
int hr_cgroup_id(const char *path, uint64_t *ret, char **ret_error);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* cgroup.h - folders of the cgroup hierarchy (version 2). No state; any thread. */
#ifndef HEADRACE_DAEMON_BASE_CGROUP_H
#define HEADRACE_DAEMON_BASE_CGROUP_H

#include <stdint.h>

/* The mount point of version 2, alone or together with version 1; NULL: not mounted. */
const char *hr_cgroup_mount(void);

/*
 * The id of a folder, by which probes identify a job's processes (probes.h). -ENOENT and other
 * errors of open; -ENOTSUP: not of version 2; -EBUSY: this process is in it, and would record
 * itself. *ret_error (malloc'ed) explains an error.
 */
int hr_cgroup_id(const char *path, uint64_t *ret, char **ret_error);

#endif

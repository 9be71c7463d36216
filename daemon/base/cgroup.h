/* SPDX-License-Identifier: Apache-2.0 */
/* cgroup.h - folders of the cgroup hierarchy (version 2). No state; any thread. */
#ifndef HEADRACE_DAEMON_BASE_CGROUP_H
#define HEADRACE_DAEMON_BASE_CGROUP_H

#include <stdint.h>

/* The mount point of version 2, alone or with version 1; NULL: it is not mounted. */
const char *hr_cgroup_mount(void);

/*
 * Finds the id of a folder, by which probes identify the processes of a job (probes.h). Errors of
 * open; -ENOTSUP: it is not of version 2; -EBUSY: this process is in it, and would record itself.
 * *ret_error (malloc'ed) explains the error.
 */
int hr_cgroup_id(const char *path, uint64_t *ret, char **ret_error);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cgroup.h - folders of the cgroup hierarchy (version 2)
 *
 * Threads   Any: plain functions over files of the kernel.
 */
#ifndef HEADRACE_DAEMON_BASE_CGROUP_H
#define HEADRACE_DAEMON_BASE_CGROUP_H

#include <stdint.h>

/* Where version 2 is mounted, alone or beside version 1; NULL: nowhere. */
const char *hr_cgroup_mount(void);

/*
 * The id of a folder below it, by which a job's processes may be known (probes.h). *ret_error (malloc'ed) says why there is none: -ENOENT
 * and what else open says; -ENOTSUP: it is no folder of version 2; -EBUSY: we are in it ourselves, and would record what we record.
 */
int hr_cgroup_id(const char *path, uint64_t *ret, char **ret_error);

#endif

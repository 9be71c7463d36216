/* SPDX-License-Identifier: Apache-2.0 */
/*
 * procfs.h - what /proc/PID/stat says of a process, and of those above it; and where it may run
 *
 * Pure readers; any thread.
 */
#ifndef HEADRACE_COMMON_PROCFS_H
#define HEADRACE_COMMON_PROCFS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct hr_procstat {
	char state; /* 'Z': a zombie */
	pid_t ppid;
	uint64_t start_time; /* clock ticks since boot: with the pid it names a process for good */
	int exit_code; /* of a zombie: a wait(2) status; else, or where it is hidden from us, 0 */
};

/* 0, -ESRCH, -EIO. */
int hr_procstat_read(pid_t pid, struct hr_procstat *ret);

/* A start_time in ns since boot, up to a clock tick (10 ms) too early. */
uint64_t hr_procstat_ns(uint64_t start_time);
/* The start_time of a process that began so many ns after boot. */
uint64_t hr_procstat_start(uint64_t ns);

/*
 * ppid, its parent and so on below init, `most` at the most: up to one that is gone, or of which `known` (may be NULL) says that no more
 * need be told. Zeroes fill what is left.
 */
typedef bool hr_procstat_known(void *arg, pid_t pid);
void hr_procstat_ancestors(pid_t ppid, hr_procstat_known *known, void *arg, int32_t *ret_pids,
			   size_t most);

/* The processors that a process may run on, by its affinity and its cpuset. Of one that is gone: zeroes. */
struct hr_affinity {
	uint32_t cpus, first; /* how many; the least number */
};
void hr_affinity_read(pid_t pid, struct hr_affinity *ret);

#endif

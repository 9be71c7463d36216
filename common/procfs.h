/* SPDX-License-Identifier: Apache-2.0 */
/*
 * procfs.h - texts of /proc; /proc/PID/stat of a process and its ancestors; its CPU affinity
 *
 * Threads   Any; the functions only read.
 */
#ifndef HEADRACE_COMMON_PROCFS_H
#define HEADRACE_COMMON_PROCFS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct hr_procstat {
	char state; /* 'Z': the process is a zombie */
	pid_t ppid;
	uint64_t start_time; /* in clock ticks since boot; pid and start_time identify a process */
	int exit_code;	     /* wait(2) status of a zombie; 0: not a zombie, or no permission */
};

/* Reads the first bytes of a file of /proc or /sys as a text. Returns its length; 0: none read. */
size_t hr_procfs_text(const char *path, char *ret, size_t bytes);

int hr_procstat_read(pid_t pid, struct hr_procstat *ret); /* 0, -ESRCH or -EIO */

/* Converts a start_time to ns since boot, rounded down to a clock tick (10 ms). */
uint64_t hr_procstat_ns(uint64_t start_time);
/* Returns the start_time of a process that started `ns` after boot. */
uint64_t hr_procstat_start(uint64_t ns);

/*
 * Stores at most `most` ancestors below init: the parent, its parent and so on. Stops at a process
 * that has exited, or for which `known` (may be NULL) returns true. Sets the rest of ret_pids to 0.
 */
typedef bool hr_procstat_known(void *arg, pid_t pid);
void hr_procstat_ancestors(pid_t ppid, hr_procstat_known *known, void *arg, int32_t *ret_pids,
			   size_t most);

/* The processors that a process may use, by affinity and cpuset. All 0 if it has exited. */
struct hr_affinity {
	uint32_t cpus, first; /* number of processors, and the lowest one */
};
void hr_affinity_read(pid_t pid, struct hr_affinity *ret);

#endif

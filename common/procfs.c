/* SPDX-License-Identifier: Apache-2.0 */
#include "common/procfs.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Numbers of fields in /proc/PID/stat, where the first field has number 1. */
#define STATE	   3
#define PPID	   4
#define START_TIME 22
#define EXIT_CODE  52

#define AFFINITY_CPUS 8192 /* largest NR_CPUS of a kernel */

size_t hr_procfs_text(const char *path, char *ret, size_t bytes)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	size_t used = 0;
	ssize_t n = fd < 0 ? 0 : 1;

	/* A file of /proc may give its text in parts. */
	for (; n > 0 && used<bytes - 1; used += n> 0 ? (size_t)n : 0)
		n = read(fd, ret + used, bytes - 1 - used);
	if (fd >= 0)
		close(fd);
	ret[used] = '\0';
	return used;
}

int hr_procstat_read(pid_t pid, struct hr_procstat *ret)
{
	char name[48], text[1024], *at;

	snprintf(name, sizeof(name), "/proc/%d/stat", (int)pid);
	if (!hr_procfs_text(name, text, sizeof(text)))
		return -ESRCH;
	/* The text is "pid (comm) state ppid ...". comm may contain any character, also ")". */
	at = strrchr(text, ')');
	if (!at)
		return -EIO;
	ret->exit_code = 0;
	for (unsigned field = 2; at && field <= EXIT_CODE; field++) {
		if (field == STATE)
			ret->state = *at;
		else if (field == PPID)
			ret->ppid = (pid_t)strtol(at, NULL, 10);
		else if (field == START_TIME)
			ret->start_time = strtoull(at, NULL, 10);
		else if (field == EXIT_CODE)
			ret->exit_code = (int)strtol(at, NULL, 10);
		at = strchr(at, ' ');
		at = at ? at + 1 : NULL;
		if (!at && field < START_TIME)
			return -EIO;
	}
	return 0;
}

uint64_t hr_procstat_ns(uint64_t start_time)
{
	uint64_t hz = (uint64_t)sysconf(_SC_CLK_TCK);

	return start_time / hz * 1000000000 + start_time % hz * 1000000000 / hz;
}

uint64_t hr_procstat_start(uint64_t ns)
{
	uint64_t hz = (uint64_t)sysconf(_SC_CLK_TCK);

	return ns / 1000000000 * hz + ns % 1000000000 * hz / 1000000000;
}

void hr_procstat_ancestors(pid_t ppid, hr_procstat_known *known, void *arg, int32_t *ret_pids,
			   size_t most)
{
	struct hr_procstat stat;

	memset(ret_pids, 0, most * sizeof(*ret_pids));
	for (size_t i = 0; i < most && ppid > 1; i++) {
		ret_pids[i] = ppid;
		if ((known && known(arg, ppid)) || hr_procstat_read(ppid, &stat))
			return;
		ppid = stat.ppid;
	}
}

void hr_affinity_read(pid_t pid, struct hr_affinity *ret)
{
	unsigned long set[AFFINITY_CPUS / (8 * sizeof(unsigned long))];
	long bytes = syscall(SYS_sched_getaffinity, pid, sizeof(set), set);

	*ret = (struct hr_affinity){0};
	for (long i = 0; i < bytes / (long)sizeof(set[0]); i++) {
		if (set[i] && !ret->cpus)
			ret->first = (uint32_t)((unsigned long)i * 8 * sizeof(set[0])) +
				     (uint32_t)__builtin_ctzl(set[i]);
		ret->cpus += (uint32_t)__builtin_popcountl(set[i]);
	}
}

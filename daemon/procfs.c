/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/procfs.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

int hr_procstat_read(pid_t pid, struct hr_procstat *ret)
{
	char name[48], text[1024], *end;
	unsigned long long start;
	ssize_t n;
	int fd, ppid;

	snprintf(name, sizeof(name), "/proc/%d/stat", (int)pid);
	fd = open(name, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return -ESRCH;
	n = read(fd, text, sizeof(text) - 1);
	close(fd);
	if (n <= 0)
		return -ESRCH;
	text[n] = 0;
	/* "pid (comm) state ppid ...": comm may hold anything, so start at the last parenthesis. */
	end = strrchr(text, ')');
	if (!end ||
	    sscanf(
		end + 1,
		" %*c %d %*d %*d %*d %*d %*u %*u %*u %*u %*u %*u %*u %*d %*d %*d %*d %*d %*d %llu",
		&ppid, &start) != 2)
		return -EIO;
	ret->ppid = ppid;
	ret->start_time = start;
	return 0;
}

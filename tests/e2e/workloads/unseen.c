/* SPDX-License-Identifier: Apache-2.0 */
/* unseen.c - a library that a program loads so that it calls libc itself (test_outside.py) */
#include <fcntl.h>
#include <unistd.h>

/* Returns how many of `times` reads of a file succeed. */
int unseen_reads(const char *path, int times)
{
	char buf[100];
	int fd = open(path, O_RDONLY), done = 0;

	for (int i = 0; i < times; i++)
		done += pread(fd, buf, sizeof(buf), 0) == (ssize_t)sizeof(buf);
	close(fd);
	return done;
}

/* Closes fd, and returns a descriptor of another file, which usually has the same number. */
int unseen_exchange(int fd, const char *path)
{
	close(fd);
	return open(path, O_RDONLY);
}

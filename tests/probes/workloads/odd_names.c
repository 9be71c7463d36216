/* SPDX-License-Identifier: Apache-2.0 */
/* odd_names FOLDER - writes one to four bytes to files that are far below, without a name, behind a link to an open one, too far below */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static void put(int fd, size_t n)
{
	if (fd < 0 || write(fd, "1234", n) != (ssize_t)n || close(fd) != 0)
		exit(1);
}

static void descend(const char *name, unsigned times)
{
	for (unsigned i = 0; i < times; i++)
		if (mkdir(name, 0700) != 0 || chdir(name) != 0)
			exit(1);
}

int main(int argc, char **argv)
{
	char name[201] = "", path[64];
	int fd;

	if (argc != 2 || chdir(argv[1]) != 0)
		return 2;
	put(open(".", O_TMPFILE | O_WRONLY, 0600), 1);
	fd = open("behind", O_CREAT | O_WRONLY, 0600);
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	put(open(path, O_WRONLY), 2);
	descend("d", 100);
	put(open("deep", O_CREAT | O_WRONLY, 0600), 3);
	memset(name, 'n', sizeof(name) - 1);
	descend(name, 20);
	put(open("deeper", O_CREAT | O_WRONLY, 0600), 4);
	return 0;
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * late PATH MS N - opens a file, and so do N children that were forked before, one after another from MS ms on: none has had anything to
 * say until then
 */
#include <fcntl.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

int main(int argc, char **argv)
{
	unsigned n, i;
	pid_t child = 1;
	int fd, status;

	if (argc != 4)
		return 2;
	n = (unsigned)strtoul(argv[3], NULL, 10);
	for (i = 0; i < n && child > 0; i++)
		child = fork();
	usleep(((useconds_t)strtoul(argv[2], NULL, 10) + i) * 1000);
	fd = open(argv[1], O_RDONLY | O_CLOEXEC);
	if (child < 0 || fd < 0 || close(fd) < 0)
		return 1;
	while (child > 0 && n > 0) {
		if (wait(&status) < 0 || status != 0)
			return 1;
		n--;
	}
	return 0;
}

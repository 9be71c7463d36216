/* SPDX-License-Identifier: Apache-2.0 */
/* late PATH MS - opens a file, and so does a child that was forked before, when both are MS ms old: neither has had anything to say until then */
#include <fcntl.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

int main(int argc, char **argv)
{
	pid_t child;
	int fd, status;

	if (argc != 3)
		return 2;
	child = fork();
	usleep((useconds_t)strtoul(argv[2], NULL, 10) * 1000);
	fd = open(argv[1], O_RDONLY | O_CLOEXEC);
	if (child < 0 || fd < 0 || close(fd) < 0)
		return 1;
	return child > 0 && (waitpid(child, &status, 0) != child || status != 0);
}

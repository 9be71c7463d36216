/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The work of test_strace.py: strace_work FOLDER. Each call below is one system call and one call
 * that the shim records. test_strace.py has the list of what it expects.
 */
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#define MUST(x)                                                                                    \
	do {                                                                                       \
		if (!(x)) {                                                                        \
			perror(#x);                                                                \
			exit(1);                                                                   \
		}                                                                                  \
	} while (0)

static char buffer[8192];

static void *reader(void *context)
{
	int fd = *(const int *)context;
	char own[100];

	for (int i = 0; i < 5; i++)
		MUST(pread(fd, own, sizeof(own), i * 100) == sizeof(own));
	return NULL;
}

static void child(const char *self)
{
	int fd = open("child file", O_CREAT | O_RDWR | O_TRUNC, 0644);

	MUST(write(fd, buffer, 50) == 50);
	MUST(close(fd) == 0);
	execl(self, self, "again", (char *)NULL);
	exit(9);
}

static int again(void)
{
	int fd = open("child file", O_RDONLY);

	MUST(lseek(fd, 10, SEEK_SET) == 10);
	MUST(read(fd, buffer, 100) == 40);
	MUST(read(fd, buffer, 100) == 0);
	MUST(close(fd) == 0);
	return 3;
}

static void files_move(int fd)
{
	struct iovec v[2] = {{buffer, 10}, {buffer + 10, 20}};
	int copy;

	MUST(write(fd, buffer, 8192) == 8192);
	MUST(lseek(fd, 100, SEEK_SET) == 100);
	MUST(read(fd, buffer, 200) == 200);
	MUST(readv(fd, v, 2) == 30);
	MUST(preadv(fd, v, 2, 4000) == 30);
	MUST(writev(fd, v, 2) == 30);
	MUST(pwrite(fd, buffer, 60, 5000) == 60);
	copy = dup(fd);
	MUST(read(copy, buffer, 11) == 11);
	MUST(close(copy) == 0);
	MUST(ftruncate(fd, 9000) == 0);
	MUST(fsync(fd) == 0);
	MUST(fdatasync(fd) == 0);
}

static void names_change(void)
{
	int fd = open("log", O_CREAT | O_WRONLY | O_APPEND, 0600);

	MUST(write(fd, buffer, 10) == 10);
	MUST(write(fd, buffer, 20) == 20);
	MUST(close(fd) == 0);
	MUST(rename("log", "sub/old") == 0);
	MUST(link("sub/old", "sub/../hard") == 0);
	MUST(chmod("hard", 0644) == 0);
	MUST(unlink("./hard") == 0);
	MUST(open("missing", O_RDONLY) < 0);
	MUST(mkdir("sub", 0700) < 0);
	MUST(chdir("sub") == 0);
	MUST(unlink("old") == 0);
	MUST(chdir("..") == 0);
	MUST(rmdir("sub") == 0);
}

int main(int argc, char **argv)
{
	pthread_t threads[2];
	int fd, status;
	char *map;
	pid_t pid;

	if (argc > 1 && strcmp(argv[1], "again") == 0)
		return again();
	MUST(chdir(argv[1]) == 0);
	MUST(mkdir("sub", 0755) == 0);
	fd = open("a \"q\"\n\xff<x>,y", O_CREAT | O_RDWR | O_TRUNC, 0644);
	files_move(fd);
	for (int i = 0; i < 2; i++)
		MUST(pthread_create(&threads[i], NULL, reader, &fd) == 0);
	for (int i = 0; i < 2; i++)
		MUST(pthread_join(threads[i], NULL) == 0);
	pid = fork();
	if (pid == 0)
		child(argv[0]);
	MUST(waitpid(pid, &status, 0) == pid && WEXITSTATUS(status) == 3);
	map = mmap(NULL, 4096, PROT_READ, MAP_SHARED, fd, 4096);
	MUST(map != MAP_FAILED);
	MUST(madvise(map, 4096, MADV_WILLNEED) == 0);
	MUST(munmap(map, 4096) == 0);
	MUST(close(fd) == 0);
	names_change();
	kill(getpid(), SIGKILL);
	return 0;
}

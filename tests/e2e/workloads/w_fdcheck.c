/* SPDX-License-Identifier: Apache-2.0 */
/*
 * w_fdcheck DIR - is any descriptor there that the program did not open?
 *
 * Prints the open descriptors at every stage: at start, after I/O, with threads that do I/O, in a
 * forked child, after closing everything from 3 up, and in a daemon that closed everything from 0
 * up and whose own files must get 0, 1, 2.
 */
#include "tally.h"

#include <dirent.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static const char *folder;

static void list(FILE *out, const char *stage)
{
	DIR *dir = opendir("/proc/self/fd");
	int own = dirfd(dir);

	fprintf(out, "%s:", stage);
	for (int fd = 0; fd < 1024; fd++)
		if (fd != own && fcntl(fd, F_GETFD) >= 0)
			fprintf(out, " %d", fd);
	fputc('\n', out);
	fflush(out);
	closedir(dir);
}

static int slurp(unsigned i)
{
	char path[TALLY_PATH_BYTES], buf[4096];

	snprintf(path, sizeof(path), "%s/f%03u", folder, i);
	int fd = open(path, O_RDONLY);
	CHECK(fd >= 0);
	while (read(fd, buf, sizeof(buf)) > 0)
		;
	CHECK(close(fd) == 0);
	return fd;
}

static void *worker(void *arg)
{
	for (int i = 0; i < 200; i++)
		slurp((unsigned)(uintptr_t)arg);
	return NULL;
}

static void with_threads(void)
{
	pthread_t threads[12];

	for (unsigned i = 0; i < 12; i++)
		CHECK(pthread_create(&threads[i], NULL, worker, (void *)(uintptr_t)i) == 0);
	for (unsigned i = 0; i < 12; i++)
		CHECK(pthread_join(threads[i], NULL) == 0);
}

static void in_child(void)
{
	pid_t child = fork();

	if (child == 0) {
		list(stdout, "child, no I/O yet");
		printf("child opened as %d\n", slurp(2));
		list(stdout, "child");
		_exit(0);
	}
	CHECK(waitpid(child, NULL, 0) == child);
}

/* As daemons do: fork, setsid, close all there is, then 0, 1 and 2 are its own files. */
static void as_daemon(void)
{
	char report[TALLY_PATH_BYTES];
	pid_t child = fork();

	if (child != 0) {
		CHECK(waitpid(child, NULL, 0) == child);
		return;
	}
	setsid();
	for (int fd = 0; fd < 1024; fd++)
		close(fd);
	snprintf(report, sizeof(report), "%s/report", folder);
	int fd = open(report, O_RDWR | O_CREAT, 0600);
	FILE *out = fdopen(dup(fd), "w");
	fprintf(out, "daemon's report is %d, a file is %d\n", fd, slurp(3));
	list(out, "daemon");
	close_range(0, 1023, 0);
	_exit(slurp(4) == 0 ? 0 : 9);
}

static void show_report(void)
{
	char report[TALLY_PATH_BYTES], line[256];

	snprintf(report, sizeof(report), "%s/report", folder);
	FILE *in = fopen(report, "r");
	CHECK(in != NULL);
	while (fgets(line, sizeof(line), in) != NULL)
		fputs(line, stdout);
	fclose(in);
	unlink(report);
}

int main(int argc, char **argv)
{
	CHECK(argc == 2);
	folder = argv[1];
	list(stdout, "start");
	printf("opened as %d\n", slurp(0));
	list(stdout, "after I/O");
	with_threads();
	list(stdout, "after threads");
	in_child();
	for (int fd = 3; fd < 1024; fd++)
		close(fd);
	printf("opened as %d\n", slurp(1));
	list(stdout, "after closing everything");
	as_daemon();
	show_report();
	return 0;
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cgroup_reader born CGROUP INSIDE OUTSIDE JSON - a child that is born in CGROUP, and reads without exec; what its parent reads is nobody's
 * cgroup_reader moved CGROUP INSIDE OUTSIDE JSON - moves itself there, while two threads read: before that OUTSIDE, INSIDE a second later
 *
 * JSON gets what was read of INSIDE (account.h). Linked statically.
 */
#include "account.h"

#include <fcntl.h>
#include <linux/sched.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define READS 300
#define BYTES 100

static const char *cgroup, *outside;
static struct account *inside, *nobodys;
static pthread_barrier_t moving, moved;

static void read_some(struct account *a, const char *path)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	char buf[BYTES];

	account_opened(a, fd);
	for (int i = 0; i < READS; i++)
		account_read(a, pread(fd, buf, sizeof(buf), i));
	CHECK(close(fd) == 0);
}

static void be_born(void)
{
	struct clone_args args = {.flags = CLONE_INTO_CGROUP, .exit_signal = SIGCHLD};
	int fd = open(cgroup, O_PATH | O_DIRECTORY | O_CLOEXEC), status;
	long pid;

	CHECK(fd >= 0);
	args.cgroup = (uint64_t)fd;
	pid = syscall(SYS_clone3, &args, sizeof(args));
	CHECK(pid >= 0);
	if (pid == 0) {
		read_some(inside, inside->path);
		_exit(0);
	}
	CHECK(waitpid((pid_t)pid, &status, 0) == pid && status == 0);
	read_some(nobodys, outside);
}

static void *thread(void *arg)
{
	read_some(nobodys, outside);
	pthread_barrier_wait(&moving);
	pthread_barrier_wait(&moved);
	read_some(inside, inside->path);
	return arg;
}

static void move(void)
{
	char path[ACCOUNT_PATH_BYTES];
	pthread_t threads[2];
	int fd;

	snprintf(path, sizeof(path), "%s/cgroup.procs", cgroup);
	CHECK(pthread_barrier_init(&moving, NULL, 3) == 0);
	CHECK(pthread_barrier_init(&moved, NULL, 3) == 0);
	for (int i = 0; i < 2; i++)
		CHECK(pthread_create(&threads[i], NULL, thread, NULL) == 0);
	pthread_barrier_wait(&moving);
	fd = open(path, O_WRONLY | O_CLOEXEC);
	CHECK(fd >= 0 && write(fd, "0", 1) == 1);
	CHECK(close(fd) == 0);
	sleep(1); /* headraced looks for our threads */
	pthread_barrier_wait(&moved);
	for (int i = 0; i < 2; i++)
		CHECK(pthread_join(threads[i], NULL) == 0);
}

int main(int argc, char **argv)
{
	static struct account unsaid;

	CHECK(argc == 6);
	cgroup = argv[2];
	outside = argv[4];
	inside = account_file(argv[3], "read", ACCOUNT_BPF);
	nobodys = &unsaid;
	if (strcmp(argv[1], "born") == 0)
		be_born();
	else
		move();
	account_end(argv[5]);
	return 0;
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * w_forkstorm DIR FORKS - fork in a program whose other threads are always inside an I/O call
 *
 * A child that inherits a lock held by a thread that does not exist in it waits for ever: SIGALRM
 * ends it then, and the program says so. Every eighth child makes a child of its own. Counts
 * everything in its tally.
 */
#include "tally.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#define THREADS		 4
#define DEADLOCK_SECONDS 300

static const char *folder;
static atomic_bool stop;

/* Counts nothing: another thread may have held the tally's mutex at fork. */
static void touch(const char *path)
{
	char buf[64];
	int fd = open(path, O_RDONLY | O_CLOEXEC);

	CHECK(fd >= 0);
	CHECK(read(fd, buf, sizeof(buf)) == sizeof(buf));
	CHECK(close(fd) == 0);
}

static void count(const char *path, uint64_t times)
{
	tally_add_many("open", path, times, 0);
	tally_add_many("read", path, times, 64 * times);
	tally_add_many("close", path, times, 0);
}

static void *busy(void *arg)
{
	char path[TALLY_PATH_BYTES];
	uint64_t times = 0;

	snprintf(path, sizeof(path), "%s/f%03u", folder, (unsigned)(uintptr_t)arg);
	for (; !atomic_load(&stop); times++) {
		touch(path);
		free(malloc(1000 + times % 1000));
		usleep(100); /* the test is about forks, not about how much a ring holds */
	}
	count(path, times);
	return NULL;
}

static void child(const char *path, int with_grandchild)
{
	alarm(DEADLOCK_SECONDS);
	touch(path);
	if (with_grandchild) {
		pid_t pid = fork();
		if (pid == 0) {
			alarm(DEADLOCK_SECONDS);
			touch(path);
			_exit(0);
		}
		int status = -1;
		_exit(waitpid(pid, &status, 0) == pid && status == 0 ? 0 : 1);
	}
	_exit(0);
}

int main(int argc, char **argv)
{
	CHECK(argc == 3);
	folder = argv[1];
	unsigned long forks = strtoul(argv[2], NULL, 10), bad = 0, grandchildren = 0;
	const char *path = data_file(folder, 40);
	pthread_t threads[THREADS];

	for (unsigned i = 0; i < THREADS; i++)
		CHECK(pthread_create(&threads[i], NULL, busy, (void *)(uintptr_t)i) == 0);
	for (unsigned long i = 0; i < forks; i++) {
		int status = -1;
		pid_t pid = fork();
		if (pid == 0)
			child(path, i % 8 == 0);
		grandchildren += i % 8 == 0;
		bad += waitpid(pid, &status, 0) != pid || status != 0;
	}
	atomic_store(&stop, true);
	for (unsigned i = 0; i < THREADS; i++)
		CHECK(pthread_join(threads[i], NULL) == 0);
	count(path, forks + grandchildren);
	tally_flush();
	printf("%lu of %lu children failed or hung\n", bad, forks);
	return bad == 0 ? 0 : 1;
}

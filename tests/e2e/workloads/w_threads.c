/* SPDX-License-Identifier: Apache-2.0 */
/*
 * w_threads DIR THREADS READS [UID] - threads that read at once, each its own file and one that all share
 *
 * A barrier lets all start together, and none ends before all have read. Counts are added up in locals, so that nothing
 * but the reads is in the loop. UID: the process becomes that user before it starts the threads.
 */
#include "tally.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static const char *folder;
static unsigned long reads;
static int shared_fd;
static const char *shared_path;
static pthread_barrier_t start;

static void *reader(void *arg)
{
	char path[TALLY_PATH_BYTES], buf[512];
	uint64_t own = 0, shared = 0;

	snprintf(path, sizeof(path), "%s/f%03lu", folder, (unsigned long)(uintptr_t)arg);
	pthread_barrier_wait(&start);
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	CHECK(fd >= 0);
	for (unsigned long i = 0; i < reads; i++) {
		ssize_t a = pread(fd, buf, sizeof(buf), (off_t)(i % 7) * 512);
		ssize_t b = pread(shared_fd, buf, 64, (off_t)(i % 11));
		CHECK(a >= 0 && b >= 0);
		own += (uint64_t)a;
		shared += (uint64_t)b;
	}
	pthread_barrier_wait(&start);
	CHECK(close(fd) == 0);
	tally_add("open", path, 0);
	tally_add_many("pread", path, reads, own);
	tally_add_many("pread", shared_path, reads, shared);
	tally_add("close", path, 0);
	return NULL;
}

int main(int argc, char **argv)
{
	CHECK(argc == 4 || argc == 5);
	folder = argv[1];
	unsigned n = (unsigned)strtoul(argv[2], NULL, 10);
	reads = strtoul(argv[3], NULL, 10);
	pthread_t *threads = calloc(n, sizeof(*threads));

	if (argc == 5)
		CHECK(setuid((uid_t)strtoul(argv[4], NULL, 10)) == 0);
	shared_path = data_file(folder, 0);
	shared_fd = t_open(shared_path, O_RDONLY | O_CLOEXEC);
	CHECK(threads != NULL && pthread_barrier_init(&start, NULL, n) == 0);
	for (unsigned i = 0; i < n; i++)
		CHECK(pthread_create(&threads[i], NULL, reader, (void *)(uintptr_t)(i + 1)) == 0);
	for (unsigned i = 0; i < n; i++)
		CHECK(pthread_join(threads[i], NULL) == 0);
	t_close(shared_fd);
	tally_flush();
	free(threads);
	return 0;
}

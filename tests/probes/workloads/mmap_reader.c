/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mmap_reader FOLDER JSON - what is read through mappings of files that the page cache does not hold
 *
 * One file is touched from its beginning to its end, one here and there, one by two threads, one by the kernel in a system call. What that brought into the page cache is what mincore() sees
 * there afterwards and did not see before; how often it had to wait for that, is what getrusage() says. Status 77 where the file system keeps the pages that it was told to drop.
 */
#include "account.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#define PAGES 512

static size_t page;

static size_t resident(void *map)
{
	unsigned char in_core[PAGES];
	size_t n = 0;

	CHECK(mincore(map, PAGES * page, in_core) == 0);
	for (size_t i = 0; i < PAGES; i++)
		n += in_core[i] & 1;
	return n;
}

static uint64_t major_faults(void)
{
	struct rusage usage;

	CHECK(getrusage(RUSAGE_SELF, &usage) == 0);
	return (uint64_t)usage.ru_majflt;
}

/* A descriptor of a file that nothing of is in the page cache. */
static int make_cold(struct account *a)
{
	char *block = malloc(page);
	int fd = open(a->path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);

	account_opened(a, fd);
	for (size_t i = 0; i < PAGES; i++) {
		account_fill(block, page, i * page);
		account_written(a, write(fd, block, page));
	}
	free(block);
	CHECK(fsync(fd) == 0);
	CHECK(posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED) == 0);
	return fd;
}

enum how { ALONE, TWO, WRITTEN };

/* `count` pages, each `stride` behind the one before it. */
struct walk {
	const char *map;
	size_t count, stride;
	enum how how;
};

static void *walk(void *arg)
{
	const struct walk *w = arg;
	int pipes[2];
	char byte;

	CHECK(pipe(pipes) == 0);
	for (size_t i = 0; i < w->count; i++) {
		uint64_t at = i * w->stride % PAGES * page;
		const char *from = w->map + at;

		if (w->how == WRITTEN) { /* it is the kernel that faults */
			CHECK(write(pipes[1], from, 1) == 1 && read(pipes[0], &byte, 1) == 1);
			from = &byte;
		}
		account_check(from, 1, at);
	}
	CHECK(close(pipes[0]) == 0 && close(pipes[1]) == 0);
	return NULL;
}

static void walk_all(struct walk *w)
{
	pthread_t other = 0;

	if (w->how == TWO) /* on the same way: one of them waits for what the other one reads */
		CHECK(pthread_create(&other, NULL, walk, w) == 0);
	walk(w);
	if (w->how == TWO)
		CHECK(pthread_join(other, NULL) == 0);
}

static void touch(struct account *a, int advice, struct walk w)
{
	int fd = make_cold(a);
	char *map = mmap(NULL, PAGES * page, PROT_READ, MAP_SHARED, fd, 0);
	uint64_t faults;
	size_t before;

	CHECK(map != MAP_FAILED && madvise(map, PAGES * page, advice) == 0);
	CHECK(close(fd) == 0);
	before = resident(map);
	if (before == PAGES) {
		fprintf(stderr, "mmap_reader: the page cache keeps what it should drop\n");
		exit(77);
	}
	w.map = map;
	faults = major_faults();
	walk_all(&w);
	a->major_faults = major_faults() - faults;
	a->filled = (resident(map) - before) * page;
	CHECK(munmap(map, PAGES * page) == 0);
}

int main(int argc, char **argv)
{
	static const struct {
		const char *name;
		int advice;
		struct walk walk;
	} files[] = {
	    {"mmap-sequential", MADV_NORMAL, {.count = PAGES, .stride = 1}},
	    {"mmap-random", MADV_RANDOM, {.count = PAGES / 8, .stride = 197}},
	    {"mmap-two", MADV_RANDOM, {.count = PAGES / 2, .stride = 197, .how = TWO}},
	    {"mmap-written", MADV_RANDOM, {.count = PAGES / 8, .stride = 197, .how = WRITTEN}},
	};

	CHECK(argc == 3);
	page = (size_t)sysconf(_SC_PAGESIZE);
	for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++)
		touch(account_file(argv[1], files[i].name, ACCOUNT_SHIM), files[i].advice,
		      files[i].walk);
	account_end(argv[2]);
	return 0;
}

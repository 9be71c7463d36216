/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mmap_reader FOLDER JSON - what is read through mappings of files that the page cache does not hold
 *
 * One file is touched from its beginning to its end, one here and there. What that brought into the page cache is what mincore() sees
 * there afterwards and did not see before. Status 77 where the file system keeps the pages that it was told to drop.
 */
#include "account.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
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

/* `count` pages, each `stride` behind the one before it. */
static void touch(struct account *a, int advice, size_t count, size_t stride)
{
	int fd = make_cold(a);
	char *map = mmap(NULL, PAGES * page, PROT_READ, MAP_SHARED, fd, 0);
	size_t before;

	CHECK(map != MAP_FAILED && madvise(map, PAGES * page, advice) == 0);
	CHECK(close(fd) == 0);
	before = resident(map);
	if (before == PAGES) {
		fprintf(stderr, "mmap_reader: the page cache keeps what it should drop\n");
		exit(77);
	}
	for (size_t i = 0; i < count; i++) {
		uint64_t at = i * stride % PAGES * page;

		account_check(map + at, 1, at);
	}
	a->filled = (resident(map) - before) * page;
	CHECK(munmap(map, PAGES * page) == 0);
}

int main(int argc, char **argv)
{
	CHECK(argc == 3);
	page = (size_t)sysconf(_SC_PAGESIZE);
	touch(account_file(argv[1], "mmap-sequential", ACCOUNT_SHIM), MADV_NORMAL, PAGES, 1);
	touch(account_file(argv[1], "mmap-random", ACCOUNT_SHIM), MADV_RANDOM, PAGES / 8, 197);
	account_end(argv[2]);
	return 0;
}

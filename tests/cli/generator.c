/* SPDX-License-Identifier: Apache-2.0 */
/*
 * generator - does I/O whose counts it knows
 *
 *      generator FOLDER FILES READS
 *              makes FILES files of READS * 4096 bytes, one write each, then reads them back
 *              4096 bytes at a time to the end; prints its arithmetic
 *      generator FOLDER FILES READS GO
 *              the same, and then reads the first file again and again until the file GO exists
 *      generator FOLDER --until-killed FILE
 *              writes one file and reads it back for ever; FILE, mapped, always holds how many
 *              reads have returned (a uint64_t)
 *
 * The arithmetic: JSON with the keys of the summary's totals.
 */
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define BLOCK 4096

static struct {
	unsigned long opens, reads, read_bytes, writes, written_bytes;
} did;

static void fail(const char *what)
{
	perror(what);
	exit(1);
}

static int open_file(const char *folder, unsigned long i, int flags)
{
	char path[4096];
	int fd;

	snprintf(path, sizeof(path), "%s/%d-%lu.bin", folder, (int)getpid(), i);
	fd = open(path, flags, 0600);
	if (fd < 0)
		fail(path);
	did.opens++;
	return fd;
}

static void make_file(const char *folder, unsigned long i, unsigned long blocks)
{
	size_t bytes = blocks * BLOCK;
	char *data = malloc(bytes);
	int fd = open_file(folder, i, O_WRONLY | O_CREAT | O_TRUNC);

	if (data == NULL)
		fail("malloc");
	memset(data, 'x', bytes);
	if (write(fd, data, bytes) != (ssize_t)bytes)
		fail("write");
	did.writes++;
	did.written_bytes += bytes;
	free(data);
	close(fd);
}

static void read_file(const char *folder, unsigned long i)
{
	char block[BLOCK];
	int fd = open_file(folder, i, O_RDONLY);
	ssize_t n;

	do {
		n = read(fd, block, sizeof(block));
		if (n < 0)
			fail("read");
		did.reads++;
		did.read_bytes += (unsigned long)n;
	} while (n > 0);
	close(fd);
}

static _Noreturn void until_killed(const char *folder, const char *counter)
{
	int fd = open(counter, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	volatile uint64_t *count;
	char block[BLOCK];

	if (fd < 0 || ftruncate(fd, sizeof(*count)) != 0)
		fail(counter);
	count = mmap(NULL, sizeof(*count), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (count == MAP_FAILED)
		fail("mmap");
	make_file(folder, 0, 4);
	fd = open_file(folder, 0, O_RDONLY);
	for (;;) {
		if (pread(fd, block, sizeof(block), (off_t)(*count % 4) * BLOCK) != BLOCK)
			fail("pread");
		*count = *count + 1;
		usleep(1000); /* leaves the processor to the test and to headraced */
	}
}

int main(int argc, char **argv)
{
	unsigned long files, blocks;

	if (argc != 4 && argc != 5)
		return 2;
	if (strcmp(argv[2], "--until-killed") == 0)
		until_killed(argv[1], argv[3]);
	files = strtoul(argv[2], NULL, 10);
	blocks = strtoul(argv[3], NULL, 10);
	for (unsigned long i = 0; i < files; i++)
		make_file(argv[1], i, blocks);
	for (unsigned long i = 0; i < files; i++)
		read_file(argv[1], i);
	while (argc == 5 && access(argv[4], F_OK) != 0) {
		read_file(argv[1], 0);
		usleep(1000);
	}
	printf("{\"opens\": %lu, \"reads\": %lu, \"read_bytes\": %lu, \"writes\": %lu, "
	       "\"written_bytes\": %lu}\n",
	       did.opens, did.reads, did.read_bytes, did.writes, did.written_bytes);
	return 0;
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * darshan_work FOLDER - calls each function that Darshan's modules POSIX and STDIO count, with known
 * sizes and offsets. The same program runs under headrace and under Darshan.
 */
#include <aio.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#define BLOCK 65536

static char block[BLOCK * 2];

/* Ends the program if a call fails. */
static long must(long result)
{
	if (result < 0) {
		perror("darshan_work");
		exit(1);
	}
	return result;
}

static void *must_get(void *result)
{
	must(result == NULL || result == MAP_FAILED ? -1 : 0);
	return result;
}

/* Sequential and strided accesses, and changes between reading and writing. */
static void work_sequences(void)
{
	int fd = (int)must(open("sequences", O_CREAT | O_RDWR, 0640));

	for (int i = 0; i < 8; i++)
		must(write(fd, block, 4096));
	must(lseek(fd, 0, SEEK_SET));
	for (int i = 0; i < 8; i++)
		must(read(fd, block, 4096));
	must(read(fd, block, 4096)); /* end of the file */
	for (int i = 0; i < 4; i++)
		must(pread(fd, block, 100, i * 8192));
	for (int i = 0; i < 3; i++)
		must(pwrite(fd, block, 1000, 1 + i * 9000));
	must(lseek(fd, -10, SEEK_END));
	must(read(fd, block, 10));
	must(fsync(fd));
	must(fdatasync(fd));
	must(close(fd));
	fd = (int)must(open("sequences", O_RDONLY));
	for (int i = 3; i >= 0; i--)
		must(pread(fd, block, 50, i * 4096));
	must(close(fd));
}

/* Each size of the histogram up to 10 MiB, and vectors. */
static void work_sizes(void)
{
	static const size_t sizes[] = {1,	100,	 101,	  1024,	    1025,
				       10240,	10241,	 102400,  102401,   1 << 20,
				       1048577, 4 << 20, 4194305, 10 << 20, 10485761};
	char *big = must_get(calloc(1, 11 << 20));
	struct iovec two[2] = {{block, 300}, {block + 300, 700}};
	int fd = (int)must(creat("sizes", 0600));

	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++)
		must(write(fd, big, sizes[i]));
	must(writev(fd, two, 2));
	must(pwritev(fd, two, 2, 5000));
	must(close(fd));
	fd = (int)must(open("sizes", O_RDONLY));
	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++)
		must(read(fd, big, sizes[i]));
	must(readv(fd, two, 2));
	must(preadv(fd, two, 2, 12345));
	must(close(fd));
	free(big);
}

/* Descriptors, appends, mappings, renames, and calls that fail. */
static void work_descriptors(void)
{
	int fd = (int)must(open("append", O_CREAT | O_WRONLY | O_APPEND, 0600)), copy;
	void *map;

	must(write(fd, block, 500));
	must(write(fd, block, 500));
	copy = (int)must(dup(fd));
	must(write(copy, block, 500));
	must(close(copy));
	copy = (int)must(fcntl(fd, F_DUPFD, 50));
	must(close(copy));
	must(close(fd));
	fd = (int)must(open("append", O_RDONLY));
	map = must_get(mmap(NULL, 1500, PROT_READ, MAP_PRIVATE, fd, 0));
	must(munmap(map, 1500));
	must(close(fd));
	must(rename("append", "renamed"));
	if (open("missing", O_RDONLY) >= 0 || errno != ENOENT)
		exit(2);
	fd = (int)must(open("renamed", O_RDONLY));
	if (write(fd, block, 1) >= 0)
		exit(2);
	must(close(fd));
}

static void work_stdio(void)
{
	FILE *f = must_get(fopen("stream", "w+"));
	char line[200];

	for (int i = 0; i < 10; i++)
		must(fprintf(f, "line %d of the stream\n", i));
	must(fputs("fputs\n", f));
	must(fwrite(block, 100, 7, f) == 7 ? 0 : -1);
	must(fflush(f));
	must(fseek(f, 0, SEEK_SET));
	must_get(fgets(line, sizeof(line), f));
	must(fread(line, 1, 50, f) == 50 ? 0 : -1);
	rewind(f);
	must(fread(line, 10, 3, f) == 3 ? 0 : -1);
	must(fseek(f, 20, SEEK_CUR));
	must(fread(line, 1, 10, f) == 10 ? 0 : -1);
	must(fseek(f, 0, SEEK_END));
	must(fread(line, 1, 10, f) == 0 ? 0 : -1); /* end of the file */
	must(fclose(f));
	f = must_get(fopen("stream", "a"));
	must(fputc('x', f));
	must(fputc('y', f));
	must(fclose(f));
}

static void work_aio(void)
{
	int fd = (int)must(open("requests", O_CREAT | O_RDWR, 0600));
	struct aiocb cb = {.aio_fildes = fd, .aio_buf = block, .aio_nbytes = 2000};
	const struct aiocb *list[] = {&cb};

	must(aio_write(&cb));
	must(aio_suspend(list, 1, NULL));
	must(aio_return(&cb));
	cb.aio_offset = 100;
	cb.aio_nbytes = 700;
	must(aio_read(&cb));
	must(aio_suspend(list, 1, NULL));
	must(aio_return(&cb));
	must(close(fd));
}

static struct {
	int fd;
	sem_t turn[2];
} threads;

/* Reads every second block, after the other thread has read the block before it. */
static void *read_blocks(void *arg)
{
	int self = arg == NULL ? 0 : 1;

	for (int i = self; i < 20; i += 2) {
		while (sem_wait(&threads.turn[self]) < 0 && errno == EINTR)
			;
		must(pread(threads.fd, block, 500, i * 500));
		must(sem_post(&threads.turn[!self]));
	}
	return NULL;
}

/* Two threads that together read a file from start to end. */
static void work_threads(void)
{
	pthread_t other;

	threads.fd = (int)must(open("threads", O_CREAT | O_RDWR, 0600));
	must(write(threads.fd, block, 10000));
	must(sem_init(&threads.turn[0], 0, 1));
	must(sem_init(&threads.turn[1], 0, 0));
	if (pthread_create(&other, NULL, read_blocks, &threads) != 0)
		exit(2);
	read_blocks(NULL);
	pthread_join(other, NULL);
	must(close(threads.fd));
}

int main(int argc, char **argv)
{
	if (argc != 2 || chdir(argv[1]) < 0)
		return 2;
	work_sequences();
	work_sizes();
	work_descriptors();
	work_stdio();
	work_aio();
	work_threads();
	return 0;
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * uring_names FOLDER - what io_uring moves by descriptors that libc opened, again and again, and by files that have none
 *
 *   used N     of 20 files that live one after the other, at the same address in the kernel: N + 1 bytes each
 *   renamed    20 times written as `new`, renamed, and read again under its name
 *   direct     opened into the ring's own table, where no descriptor is; descriptor 0 is another file
 *   (a pipe)   registered, and no file
 */
#include <fcntl.h>
#include <liburing.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define FILES 20

#define CHECK(ok)                                                                                  \
	do {                                                                                       \
		if (!(ok)) {                                                                       \
			fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #ok);                   \
			exit(1);                                                                   \
		}                                                                                  \
	} while (0)

static struct io_uring ring;
static char data[4096];

static int done(void)
{
	struct io_uring_cqe *cqe;
	int r;

	CHECK(io_uring_submit(&ring) == 1);
	CHECK(io_uring_wait_cqe(&ring, &cqe) == 0);
	r = cqe->res;
	io_uring_cqe_seen(&ring, cqe);
	return r;
}

static int opened(const char *path, int flags)
{
	int fd = open(path, flags | O_CLOEXEC, 0600);

	CHECK(fd >= 0);
	return fd;
}

static void moves(int fd, bool reads, unsigned bytes, unsigned flags)
{
	struct io_uring_sqe *sqe = io_uring_get_sqe(&ring);

	if (reads)
		io_uring_prep_read(sqe, fd, data, bytes, 0);
	else
		io_uring_prep_write(sqe, fd, data, bytes, 0);
	io_uring_sqe_set_flags(sqe, flags);
	CHECK(done() == (int)bytes);
}

static void direct(void)
{
	int none[3] = {-1, -1, -1}, pipes[2];
	struct io_uring_sqe *sqe;

	CHECK(pipe(pipes) == 0);
	CHECK(io_uring_register_files(&ring, none, 3) == 0);
	CHECK(io_uring_register_files_update(&ring, 1, pipes, 2) == 2);
	CHECK(dup2(opened("zero", O_RDWR | O_CREAT), 0) == 0);
	sqe = io_uring_get_sqe(&ring);
	io_uring_prep_openat_direct(sqe, AT_FDCWD, "direct", O_RDWR | O_CREAT, 0600, 0);
	CHECK(done() == 0);
	moves(0, false, 300, IOSQE_FIXED_FILE);
	CHECK(write(0, data, 5) == 5);
	moves(2, false, 9, IOSQE_FIXED_FILE);
	moves(1, true, 9, IOSQE_FIXED_FILE);
	sqe = io_uring_get_sqe(&ring);
	io_uring_prep_close_direct(sqe, 0);
	CHECK(done() == 0);
	CHECK(write(0, data, 6) == 6);
}

int main(int argc, char **argv)
{
	char name[32];
	int fd;

	if (argc != 2 || chdir(argv[1]) < 0)
		return 2;
	if (io_uring_queue_init(8, &ring, 0) < 0)
		return 77;
	for (unsigned i = 0; i < FILES; i++) {
		snprintf(name, sizeof(name), "used %u", i);
		fd = opened(name, O_RDWR | O_CREAT);
		moves(fd, false, i + 1, 0);
		close(fd);
		CHECK(unlink(name) == 0);
	}
	for (unsigned i = 0; i < FILES; i++) {
		fd = opened("new", O_RDWR | O_CREAT);
		moves(fd, false, 100, 0);
		close(fd);
		CHECK(rename("new", "renamed") == 0);
		fd = opened("renamed", O_RDONLY);
		moves(fd, true, 100, 0);
		close(fd);
	}
	direct();
	return 0;
}

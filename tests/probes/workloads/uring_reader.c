/* SPDX-License-Identifier: Apache-2.0 */
/*
 * uring_reader FOLDER JSON - reads and writes through io_uring
 *
 * A file for each way: requests one by one, linked, with fixed files and buffers, by the kernel's workers, completed in another
 * thread, submitted by the kernel's polling thread (where that is allowed). Status 77 where there is no io_uring.
 */
#include "account.h"

#include <errno.h>
#include <fcntl.h>
#include <liburing.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define DEPTH 32
#define PIECE 2048
#define BYTES (DEPTH * PIECE)

enum kind { OPEN, READ, WRITE, OTHER };

/* What one entry of the queue asks for; its completion is accounted. */
struct request {
	struct account *account;
	void *buf;
	uint64_t at;
	enum kind kind;
	int result;
};

static char data[BYTES];
static const char *folder;

/* A complete entry: what it is of, and where its completion goes. */
static void asks(struct io_uring_sqe *sqe, struct request *r, struct account *a, enum kind kind,
		 void *buf, uint64_t at)
{
	*r = (struct request){.account = a, .kind = kind, .buf = buf, .at = at};
	io_uring_sqe_set_data(sqe, r);
}

static void complete(struct io_uring *ring)
{
	struct io_uring_cqe *cqe;
	struct request *r;

	CHECK(io_uring_wait_cqe(ring, &cqe) == 0);
	CHECK(cqe->res >= 0);
	r = io_uring_cqe_get_data(cqe);
	r->result = cqe->res;
	switch (r->kind) {
	case OPEN:
		account_opened(r->account, cqe->res);
		break;
	case READ:
		account_read(r->account, cqe->res);
		account_check(r->buf, (size_t)cqe->res, r->at);
		break;
	case WRITE:
		account_written(r->account, cqe->res);
		break;
	case OTHER:
		break;
	}
	io_uring_cqe_seen(ring, cqe);
}

static void submit(struct io_uring *ring, int n)
{
	CHECK(io_uring_submit(ring) == n);
	while (n-- > 0)
		complete(ring);
}

/* A file of BYTES, made by ordinary calls; for what the ring does with it. */
static struct account *make(const char *name, int *ret_fd)
{
	struct account *made = account_file(folder, name, ACCOUNT_SHIM);

	*ret_fd = open(made->path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	account_opened(made, *ret_fd);
	account_written(made, write(*ret_fd, data, BYTES));
	return account_file(folder, name, ACCOUNT_BPF);
}

/* Opened, written, synced, read and closed by the ring alone; also past the end. */
static void one_by_one(struct io_uring *ring)
{
	struct account *a = account_file(folder, "uring-single", ACCOUNT_BPF);
	struct iovec iov[2] = {{data, 1000}, {data + 1000, BYTES - 1000}};
	char buf[PIECE], other[PIECE];
	struct iovec into[1] = {{other, sizeof(other)}};
	struct io_uring_sqe *sqe;
	struct request r;
	int fd;

	sqe = io_uring_get_sqe(ring);
	io_uring_prep_openat(sqe, AT_FDCWD, a->path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	asks(sqe, &r, a, OPEN, NULL, 0);
	submit(ring, 1);
	fd = r.result;
	sqe = io_uring_get_sqe(ring);
	io_uring_prep_writev(sqe, fd, iov, 2, 0);
	asks(sqe, &r, a, WRITE, NULL, 0);
	submit(ring, 1);
	sqe = io_uring_get_sqe(ring);
	io_uring_prep_fsync(sqe, fd, 0);
	asks(sqe, &r, a, OTHER, NULL, 0);
	submit(ring, 1);
	for (uint64_t at = PIECE / 2; at <= BYTES; at += PIECE) { /* the last one is short */
		sqe = io_uring_get_sqe(ring);
		io_uring_prep_read(sqe, fd, buf, PIECE, at);
		asks(sqe, &r, a, READ, buf, at);
		submit(ring, 1);
	}
	CHECK(r.result == PIECE / 2);
	sqe = io_uring_get_sqe(ring);
	io_uring_prep_readv(sqe, fd, into, 1, 777);
	asks(sqe, &r, a, READ, other, 777);
	submit(ring, 1);
	sqe = io_uring_get_sqe(ring);
	io_uring_prep_read(sqe, fd, buf, PIECE, BYTES);
	asks(sqe, &r, a, READ, buf, BYTES);
	submit(ring, 1);
	CHECK(r.result == 0);
	sqe = io_uring_get_sqe(ring);
	io_uring_prep_close(sqe, fd);
	asks(sqe, &r, a, OTHER, NULL, 0);
	submit(ring, 1);
}

/* write -> fsync -> read, one submission. */
static void linked(struct io_uring *ring)
{
	int fd;
	struct account *a = make("uring-linked", &fd);
	char buf[PIECE];
	struct io_uring_sqe *sqe;
	struct request r[3];

	for (uint64_t at = 0; at < BYTES; at += 8 * PIECE) {
		sqe = io_uring_get_sqe(ring);
		io_uring_prep_write(sqe, fd, data + at, PIECE, at);
		sqe->flags |= IOSQE_IO_LINK;
		asks(sqe, &r[0], a, WRITE, NULL, at);
		sqe = io_uring_get_sqe(ring);
		io_uring_prep_fsync(sqe, fd, IORING_FSYNC_DATASYNC);
		sqe->flags |= IOSQE_IO_LINK;
		asks(sqe, &r[1], a, OTHER, NULL, 0);
		sqe = io_uring_get_sqe(ring);
		io_uring_prep_read(sqe, fd, buf, PIECE, at);
		asks(sqe, &r[2], a, READ, buf, at);
		submit(ring, 3);
	}
	CHECK(close(fd) == 0);
}

/* DEPTH reads of PIECE in one submission, with `flags`, of descriptor or fixed file `fd`. */
static void queue_reads(struct io_uring *ring, struct account *a, int fd, unsigned flags,
			struct request r[DEPTH], char *into)
{
	for (int i = 0; i < DEPTH; i++) {
		struct io_uring_sqe *sqe = io_uring_get_sqe(ring);
		uint64_t at = (uint64_t)i * PIECE;

		io_uring_prep_read(sqe, fd, into + at, PIECE, at);
		sqe->flags |= flags;
		asks(sqe, &r[i], a, READ, into + at, at);
	}
}

static void fixed(struct io_uring *ring)
{
	static char buf[BYTES];
	struct iovec iov = {buf, sizeof(buf)};
	int fd;
	struct account *a = make("uring-fixed", &fd);
	struct io_uring_sqe *sqe;
	struct request r[DEPTH];

	CHECK(io_uring_register_buffers(ring, &iov, 1) == 0);
	CHECK(io_uring_register_files(ring, &fd, 1) == 0);
	CHECK(close(fd) == 0); /* the ring holds it */
	for (int i = 0; i < DEPTH; i++) {
		uint64_t at = (uint64_t)i * PIECE;

		sqe = io_uring_get_sqe(ring);
		io_uring_prep_read_fixed(sqe, 0, buf + at, PIECE, at, 0);
		sqe->flags |= IOSQE_FIXED_FILE;
		asks(sqe, &r[i], a, READ, buf + at, at);
	}
	submit(ring, DEPTH);
	for (int i = 0; i < 4; i++) {
		sqe = io_uring_get_sqe(ring);
		io_uring_prep_write_fixed(sqe, 0, buf + i * PIECE, PIECE, (uint64_t)i * PIECE, 0);
		sqe->flags |= IOSQE_FIXED_FILE;
		asks(sqe, &r[i], a, WRITE, NULL, 0);
	}
	submit(ring, 4);
	queue_reads(ring, a, 0, IOSQE_FIXED_FILE, r, buf);
	submit(ring, DEPTH);
	CHECK(io_uring_unregister_files(ring) == 0);
	CHECK(io_uring_unregister_buffers(ring) == 0);
}

static void by_workers(struct io_uring *ring)
{
	static char buf[BYTES];
	int fd;
	struct account *a = make("uring-workers", &fd);
	struct request r[DEPTH];

	queue_reads(ring, a, fd, IOSQE_ASYNC, r, buf);
	submit(ring, DEPTH);
	CHECK(close(fd) == 0);
}

static void *complete_all(void *ring)
{
	for (int i = 0; i < DEPTH; i++)
		complete(ring);
	return NULL;
}

static void in_another_thread(struct io_uring *ring)
{
	static char buf[BYTES];
	int fd;
	struct account *a = make("uring-thread", &fd);
	struct request r[DEPTH];
	pthread_t thread;

	CHECK(pthread_create(&thread, NULL, complete_all, ring) == 0);
	queue_reads(ring, a, fd, 0, r, buf);
	CHECK(io_uring_submit(ring) == DEPTH);
	CHECK(pthread_join(thread, NULL) == 0);
	CHECK(close(fd) == 0);
}

static void polled(void)
{
	static char buf[BYTES];
	struct io_uring_params params = {.flags = IORING_SETUP_SQPOLL, .sq_thread_idle = 100};
	struct io_uring ring;
	struct request r[DEPTH];
	struct account *a;
	int fd;

	if (io_uring_queue_init_params(DEPTH, &ring, &params) < 0)
		return;
	a = make("uring-polled", &fd);
	queue_reads(&ring, a, fd, 0, r, buf);
	CHECK(io_uring_submit(&ring) >= 0); /* how many the thread has seen is its own matter */
	complete_all(&ring);
	CHECK(close(fd) == 0);
	io_uring_queue_exit(&ring);
}

int main(int argc, char **argv)
{
	struct io_uring ring;
	int r = io_uring_queue_init(DEPTH, &ring, 0);

	CHECK(argc == 3);
	if (r < 0) {
		fprintf(stderr, "uring_reader: no io_uring: %s\n", strerror(-r));
		return 77;
	}
	folder = argv[1];
	account_fill(data, sizeof(data), 0);
	one_by_one(&ring);
	linked(&ring);
	fixed(&ring);
	by_workers(&ring);
	in_another_thread(&ring);
	io_uring_queue_exit(&ring);
	polled();
	account_end(argv[2]);
	return 0;
}

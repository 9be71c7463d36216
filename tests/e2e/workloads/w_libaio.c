/* SPDX-License-Identifier: Apache-2.0 */
/*
 * w_libaio FOLDER - requests of libaio: several at a time, with O_DIRECT and without, refused, failed, forked, by syscall()
 *
 * A request counts when its result is taken, under the name of what it asks for; each call of io_submit under the first
 * one's file. Requests are numbered in iocb.data, by which strace's account of them is put together. The last one is
 * never asked for its result.
 */
#include "tally.h"

#include <errno.h>
#include <libaio.h>
#include <pthread.h>
#include <sched.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define BLOCK  4096
#define BATCH  8
#define QUEUE  64
#define ROUNDS 500 /* of the two threads */

struct request {
	struct iocb cb; /* first: io_event.obj is its address */
	const char *op;
	const char *path;
	char *buf;
};

static io_context_t context;
static bool by_syscall;
static uintptr_t numbers;
static long taken; /* results */

static long submit(long n, struct iocb **list)
{
	long r =
	    by_syscall ? syscall(SYS_io_submit, context, n, list) : io_submit(context, n, list);

	tally_add("io_submit", ((struct request *)list[0])->path, 0);
	return by_syscall && r < 0 ? -errno : r;
}

static void take(long n)
{
	struct io_event events[BATCH];
	long r;

	while (n > 0) {
		r = by_syscall ? syscall(SYS_io_getevents, context, 1L, BATCH, events, NULL)
			       : io_getevents(context, 1, BATCH, events, NULL);
		CHECK(r > 0);
		for (long i = 0; i < r; i++) {
			struct request *q = (struct request *)events[i].obj;
			int64_t moved = (int64_t)events[i].res;

			tally_add(q->op, q->path, moved > 0 ? (uint64_t)moved : 0);
		}
		n -= r;
		__atomic_fetch_add(&taken, r, __ATOMIC_RELEASE);
	}
}

static void number(struct request *q, const char *op, int fd)
{
	q->op = op;
	q->path = tally_path(fd);
	q->cb.data = (void *)++numbers;
}

static void prepare(struct request *q, bool writes, int fd, size_t bytes, long long offset)
{
	if (q->buf == NULL)
		CHECK(posix_memalign((void **)&q->buf, BLOCK, 2 * BLOCK) == 0);
	memset(q->buf, 'q', 2 * BLOCK);
	if (writes)
		io_prep_pwrite(&q->cb, fd, q->buf, bytes, offset);
	else
		io_prep_pread(&q->cb, fd, q->buf, bytes, offset);
	number(q, writes ? "io_pwrite" : "io_pread", fd);
}

static int batch(struct request *q, struct iocb **list, bool writes, int fd, size_t bytes)
{
	for (int i = 0; i < BATCH; i++) {
		prepare(&q[i], writes, fd, bytes, i * BLOCK);
		list[i] = &q[i].cb;
	}
	return BATCH;
}

static void vectors_and_syncs(struct request *q, struct iocb **list, int fd)
{
	static struct iovec iov[2];

	iov[0] = (struct iovec){q[0].buf, 100};
	iov[1] = (struct iovec){q[0].buf + 100, 28};
	io_prep_pwritev(&q[0].cb, fd, iov, 2, 0);
	number(&q[0], "io_pwritev", fd);
	CHECK(submit(1, list) == 1);
	take(1);
	io_prep_preadv(&q[0].cb, fd, iov, 2, BATCH * BLOCK - 50);
	number(&q[0], "io_preadv", fd);
	io_prep_fsync(&q[1].cb, fd);
	number(&q[1], "io_fsync", fd);
	io_prep_fdsync(&q[2].cb, fd);
	number(&q[2], "io_fdsync", fd);
	CHECK(submit(3, list) == 3);
	take(3);
}

/* One in the middle may not write there: the kernel takes those before it, and refuses it when it comes first. */
static void refused(struct request *q, struct iocb **list, int fd)
{
	int only = t_open(tally_path(fd), O_RDONLY);

	batch(q, list, false, fd, BLOCK);
	prepare(&q[3], true, only, BLOCK, 0);
	CHECK(submit(BATCH, list) == 3);
	CHECK(submit(BATCH - 3, list + 3) == -EBADF);
	CHECK(submit(BATCH - 4, list + 4) == BATCH - 4);
	take(BATCH - 1);
	t_close(only);
}

static void all_kinds(const char *path, int flags)
{
	struct request q[BATCH] = {{.op = NULL}};
	struct iocb *list[BATCH];
	int fd = t_open(path, O_RDWR | O_CREAT | flags);

	CHECK(submit(batch(q, list, true, fd, BLOCK), list) == BATCH);
	take(BATCH);
	CHECK(submit(batch(q, list, false, fd, 2 * BLOCK), list) == BATCH); /* the last is short */
	take(BATCH);
	if (flags & O_DIRECT) { /* it fails when it is over, not when it is submitted */
		prepare(&q[0], false, fd, 100, 1);
		CHECK(submit(1, list) == 1);
		take(1);
	} else {
		vectors_and_syncs(q, list, fd);
	}
	refused(q, list, fd);
	t_close(fd);
	for (int i = 0; i < BATCH; i++)
		free(q[i].buf);
}

static void *take_all(void *unused)
{
	(void)unused;
	take((long)ROUNDS * 2);
	return NULL;
}

/* One thread submits, another is given the results. */
static void two_threads(const char *path)
{
	static struct request q[ROUNDS * 2];
	int fd = t_open(path, O_RDWR);
	long before = taken;
	pthread_t t;

	CHECK(pthread_create(&t, NULL, take_all, NULL) == 0);
	for (int i = 0; i < ROUNDS; i++) {
		struct iocb *list[2] = {&q[2 * i].cb, &q[2 * i + 1].cb};
		prepare(&q[2 * i], i % 2, fd, 512, i % BATCH * 512);
		prepare(&q[2 * i + 1], false, fd, 100, i % BATCH * 512);
		while (before + 2 * i - __atomic_load_n(&taken, __ATOMIC_ACQUIRE) > QUEUE - 2)
			sched_yield();
		CHECK(submit(2, list) == 2);
	}
	CHECK(pthread_join(t, NULL) == 0);
	t_close(fd);
	for (int i = 0; i < 2 * ROUNDS; i++)
		free(q[i].buf);
}

/* Under way while the process forks; the child has a queue of its own, and the same control blocks. */
static void forked(const char *path)
{
	struct request q[BATCH] = {{.op = NULL}};
	struct iocb *list[BATCH];
	int fd = t_open(path, O_RDWR), status;
	pid_t pid;

	CHECK(submit(batch(q, list, false, fd, BLOCK), list) == BATCH);
	pid = fork();
	if (pid == 0) {
		tally_child();
		context = NULL;
		numbers += 1 << 20; /* not its parent's next ones */
		CHECK(io_setup(BATCH, &context) == 0);
		CHECK(submit(batch(q, list, true, fd, 1000), list) == BATCH);
		take(BATCH);
		tally_flush();
		_exit(0);
	}
	CHECK(waitpid(pid, &status, 0) == pid && status == 0);
	take(BATCH);
	t_close(fd);
	for (int i = 0; i < BATCH; i++)
		free(q[i].buf);
}

int main(int argc, char **argv)
{
	static struct request last;
	struct iocb *list[1] = {&last.cb};
	char path[TALLY_PATH_BYTES], direct[TALLY_PATH_BYTES];
	int fd;

	CHECK(argc == 2);
	CHECK(snprintf(path, sizeof(path), "%s/buffered", argv[1]) < TALLY_PATH_BYTES);
	CHECK(snprintf(direct, sizeof(direct), "%s/direct", argv[1]) < TALLY_PATH_BYTES);
	CHECK(io_setup(QUEUE, &context) == 0);
	for (int i = 0; i < 2; i++) {
		by_syscall = i == 1;
		all_kinds(path, 0);
		fd = open(direct, O_RDWR | O_CREAT | O_DIRECT | O_CLOEXEC, 0600);
		tally_add("open", direct, 0);
		if (fd >= 0) { /* an old tmpfs has no such thing */
			tally_name(fd, direct);
			t_close(fd);
			all_kinds(direct, O_DIRECT);
		}
	}
	by_syscall = false;
	two_threads(path);
	forked(path);
	fd = t_open(path, O_RDONLY);
	prepare(&last, false, fd, 10, 0);
	CHECK(submit(1, list) == 1);
	tally_flush();
	return 0;
}

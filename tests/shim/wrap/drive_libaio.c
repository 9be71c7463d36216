/* SPDX-License-Identifier: Apache-2.0 */
/* drive_libaio.c - the kernel's asynchronous I/O: libaio's functions where it is installed, and syscall() everywhere */
#include "drive.h"

#include <linux/aio_abi.h>
#include <sys/syscall.h>

static aio_context_t ctx;

static void begin(void)
{
	ctx = 0;
	assert_int_equal(syscall(SYS_io_setup, 8, &ctx), 0);
}

static void finish(void)
{
	assert_int_equal(syscall(SYS_io_destroy, ctx), 0);
}

static struct iocb block(int how, int fd, const void *buf, uint64_t n, int64_t offset)
{
	return (struct iocb){.aio_lio_opcode = (uint16_t)how,
			     .aio_fildes = (uint32_t)fd,
			     .aio_buf = (uintptr_t)buf,
			     .aio_nbytes = n,
			     .aio_offset = offset};
}

/* Where libaio is not installed its functions fail as they do; the requests are driven by syscall() then. */
static long submit(long n, struct iocb **list)
{
	if (in_libc("io_submit"))
		return ON(hr_wrap_io_submit((void *)ctx, n, list));
	assert_int_equal(ON(hr_wrap_io_submit((void *)ctx, n, list)), -ENOSYS);
	while (stub_take() != NULL)
		;
	return ON(hr_wrap_syscall(SYS_io_submit, ctx, n, list));
}

static long reap(long n, struct io_event *events)
{
	if (in_libc("io_getevents"))
		return ON(hr_wrap_io_getevents((void *)ctx, n, n, events, NULL));
	return ON(hr_wrap_syscall(SYS_io_getevents, ctx, n, n, events, NULL));
}

static void data_requests(int fd, int out)
{
	char in[10], a[4], b[6];
	struct iovec to[2] = {{a, 4}, {b, 6}}, from[2] = {{(void *)"WW", 2}, {(void *)"VVV", 3}};
	struct iocb r = block(IOCB_CMD_PREAD, fd, in, 10, 16);
	struct iocb w = block(IOCB_CMD_PWRITE, out, "WWWWWWWW", 8, 0);
	struct iocb rv = block(IOCB_CMD_PREADV, fd, to, 2, 60);
	struct iocb wv = block(IOCB_CMD_PWRITEV, out, from, 2, 8);
	struct iocb *list[] = {&r, &w, &rv, &wv};
	struct io_event events[4];

	assert_int_equal(submit(4, list), 4);
	WANT(HR_OP_io_submit, .fd = fd, .asked = 10 + 8 + 10 + 5, .ret = 4);
	for (int i = 0; i < 4; i++) {
		assert_int_equal(reap(1, events), 1);
		if (events[0].obj == (uintptr_t)&r)
			WANT(HR_OP_io_pread, .fd = fd, .asked = 10, .offset = 16, .ret = 10);
		else if (events[0].obj == (uintptr_t)&w)
			WANT(HR_OP_io_pwrite, .fd = out, .path = P("new"), .asked = 8, .offset = 0,
			     .ret = 8);
		else if (events[0].obj == (uintptr_t)&rv)
			WANT(HR_OP_io_preadv, .fd = fd, .asked = 10, .offset = 60, .ret = 4);
		else
			WANT(HR_OP_io_pwritev, .fd = out, .path = P("new"), .asked = 5, .offset = 8,
			     .ret = 5);
	}
	assert_memory_equal(in, "0123456789", 10);
	assert_true(holds("new", "WWWWWWWWWWVVV"));
}

static void sync_requests(int out)
{
	struct iocb s = block(IOCB_CMD_FSYNC, out, NULL, 0, 0), *list[] = {&s};
	struct io_event event;

	assert_int_equal(submit(1, list), 1);
	WANT(HR_OP_io_submit, .fd = out, .path = P("new"), .asked = 0, .ret = 1);
	assert_int_equal(reap(1, &event), 1);
	WANT(HR_OP_io_fsync, .fd = out, .path = P("new"));
	s.aio_lio_opcode = IOCB_CMD_FDSYNC;
	assert_int_equal(submit(1, list), 1);
	WANT(HR_OP_io_submit, .fd = out, .path = P("new"), .asked = 0, .ret = 1);
	assert_int_equal(reap(1, &event), 1);
	WANT(HR_OP_io_fdsync, .fd = out, .path = P("new"));
}

/* Requests that the kernel refuses are none; what it cannot read is not read here either. */
static void refused_requests(int fd)
{
	char buf[10];
	struct iocb good = block(IOCB_CMD_PREAD, fd, buf, 10, 0);
	struct iocb bad = block(IOCB_CMD_PWRITE, fd, buf, 10, 0);
	struct iocb wild = block(IOCB_CMD_PREADV, fd, (void *)8, 2, 0);
	struct iocb *list[] = {&good, &bad, &good}, *wilds[] = {&wild}, *nowhere[] = {(void *)8};
	struct io_event event;

	assert_int_equal(submit(3, list), 1);
	WANT(HR_OP_io_submit, .fd = fd, .asked = 30, .ret = 1);
	assert_int_equal(submit(1, list + 1), -EBADF);
	WANT(HR_OP_io_submit, .fd = fd, .asked = 10, .ret = -EBADF);
	assert_int_equal(submit(1, wilds), -EFAULT);
	WANT(HR_OP_io_submit, .fd = fd, .asked = 0, .ret = -EFAULT);
	assert_int_equal(submit(1, nowhere), -EFAULT);
	assert_int_equal(submit(1, NULL), -EFAULT);
	assert_int_equal(submit(-1, NULL), -EINVAL);
	assert_int_equal(reap(1, &event), 1);
	WANT(HR_OP_io_pread, .fd = fd, .asked = 10, .offset = 0, .ret = 10);
}

void drive_io_submit(void)
{
	int fd = data_open(O_RDONLY), out = fd_open("new", O_CREAT | O_WRONLY);

	begin();
	data_requests(fd, out);
	sync_requests(out);
	if (in_libc("io_submit"))
		refused_requests(fd);
	finish();
}

void drive_io_getevents(void)
{
	char buf[10];
	struct iocb r = block(IOCB_CMD_PREAD, data_open(O_RDONLY), buf, 10, 60), *list[] = {&r};
	struct io_event event;

	begin();
	assert_int_equal(submit(1, list), 1);
	WANT(HR_OP_io_submit, .fd = (int)r.aio_fildes, .asked = 10, .ret = 1);
	assert_int_equal(reap(1, &event), 1);
	WANT(HR_OP_io_pread, .fd = (int)r.aio_fildes, .asked = 10, .offset = 60, .ret = 4);
	if (in_libc("io_getevents"))
		assert_int_equal(ON(hr_wrap_io_getevents(NULL, 1, 1, &event, NULL)), -EINVAL);
	finish();
}

void drive_io_pgetevents(void)
{
	char buf[10];
	struct iocb r = block(IOCB_CMD_PREAD, data_open(O_RDONLY), buf, 10, 0), *list[] = {&r};
	struct timespec soon = {.tv_sec = 5};
	struct io_event event;
	sigset_t none;

	sigemptyset(&none);
	begin();
	assert_int_equal(submit(1, list), 1);
	WANT(HR_OP_io_submit, .fd = (int)r.aio_fildes, .asked = 10, .ret = 1);
	if (in_libc("io_pgetevents"))
		assert_int_equal(ON(hr_wrap_io_pgetevents((void *)ctx, 1, 1, &event, &soon, &none)),
				 1);
	else
		assert_int_equal(reap(1, &event), 1);
	WANT(HR_OP_io_pread, .fd = (int)r.aio_fildes, .asked = 10, .offset = 0, .ret = 10);
	finish();
}

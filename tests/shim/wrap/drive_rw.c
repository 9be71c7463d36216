/* SPDX-License-Identifier: Apache-2.0 */
#include "drive.h"

#include <sys/sendfile.h>

#define N 10

/* The vectors split the N bytes in two; what is asked of them is summed once the call succeeded. */
#define IOV(buf) ((struct iovec[2]){{buf, 4}, {(buf) + 4, N - 4}})

/* ---- reads ---------------------------------------------------------------------------------- */

static void check_read(uint16_t id, int fd, ssize_t r, const char *buf, int64_t offset,
		       uint32_t flags)
{
	int64_t at = offset == HR_OFFSET_NONE ? 0 : offset;

	assert_int_equal(r, N);
	assert_memory_equal(buf, TEXT + at, N);
	WANT(id, .fd = fd, .asked = N, .offset = offset, .ret = N, .flags = flags);
}

/* Then again on a descriptor that may not be read: the original's errno, and an event that says so. */
#define READ(name, asked_, offset_, flags_, ...)                                                   \
	void drive_##name(void)                                                                    \
	{                                                                                          \
		int fd = data_open(O_RDONLY);                                                      \
		char buf[N] = "";                                                                  \
		ssize_t r = ON(hr_wrap_##name(__VA_ARGS__));                                       \
                                                                                                   \
		check_read(HR_OP_##name, fd, r, buf, offset_, flags_);                             \
		fd = data_open(O_WRONLY);                                                          \
		assert_failed(ON(hr_wrap_##name(__VA_ARGS__)), EBADF);                             \
		WANT(HR_OP_##name, .fd = fd, .asked = asked_, .offset = offset_, .ret = -EBADF,    \
		     .flags = flags_);                                                             \
	}

READ(read, N, HR_OFFSET_NONE, 0, fd, buf, N)
READ(__read_chk, N, HR_OFFSET_NONE, 0, fd, buf, N, sizeof(buf))
READ(pread, N, 5, 0, fd, buf, N, 5)
READ(pread64, N, 5, 0, fd, buf, N, 5)
READ(__pread_chk, N, 5, 0, fd, buf, N, 5, sizeof(buf))
READ(__pread64_chk, N, 5, 0, fd, buf, N, 5, sizeof(buf))
READ(readv, HR_ASKED_NONE, HR_OFFSET_NONE, 0, fd, IOV(buf), 2)
READ(preadv, HR_ASKED_NONE, 5, 0, fd, IOV(buf), 2, 5)
READ(preadv64, HR_ASKED_NONE, 5, 0, fd, IOV(buf), 2, 5)
READ(preadv2, HR_ASKED_NONE, HR_OFFSET_NONE, RWF_HIPRI, fd, IOV(buf), 2, -1, RWF_HIPRI)
READ(preadv64v2, HR_ASKED_NONE, 5, RWF_HIPRI, fd, IOV(buf), 2, 5, RWF_HIPRI)

/* ---- writes --------------------------------------------------------------------------------- */

static void check_write(uint16_t id, int fd, ssize_t r, int64_t offset, uint32_t flags)
{
	int64_t at = offset == HR_OFFSET_NONE ? 0 : offset;
	char whole[] = TEXT;

	memset(whole + at, 'W', N);
	assert_int_equal(r, N);
	assert_true(holds("data", whole));
	WANT(id, .fd = fd, .asked = N, .offset = offset, .ret = N, .flags = flags);
}

#define WRITE(name, asked_, offset_, flags_, ...)                                                  \
	void drive_##name(void)                                                                    \
	{                                                                                          \
		int fd = data_open(O_WRONLY);                                                      \
		char buf[] = "WWWWWWWWWW";                                                         \
		ssize_t r = ON(hr_wrap_##name(__VA_ARGS__));                                       \
                                                                                                   \
		check_write(HR_OP_##name, fd, r, offset_, flags_);                                 \
		fd = data_open(O_RDONLY);                                                          \
		assert_failed(ON(hr_wrap_##name(__VA_ARGS__)), EBADF);                             \
		WANT(HR_OP_##name, .fd = fd, .asked = asked_, .offset = offset_, .ret = -EBADF,    \
		     .flags = flags_);                                                             \
	}

WRITE(write, N, HR_OFFSET_NONE, 0, fd, buf, N)
WRITE(pwrite, N, 5, 0, fd, buf, N, 5)
WRITE(pwrite64, N, 5, 0, fd, buf, N, 5)
WRITE(writev, HR_ASKED_NONE, HR_OFFSET_NONE, 0, fd, IOV(buf), 2)
WRITE(pwritev, HR_ASKED_NONE, 5, 0, fd, IOV(buf), 2, 5)
WRITE(pwritev64, HR_ASKED_NONE, 5, 0, fd, IOV(buf), 2, 5)
WRITE(pwritev2, HR_ASKED_NONE, 5, RWF_DSYNC, fd, IOV(buf), 2, 5, RWF_DSYNC)
WRITE(pwritev64v2, HR_ASKED_NONE, HR_OFFSET_NONE, RWF_DSYNC, fd, IOV(buf), 2, -1, RWF_DSYNC)

/* ---- between two descriptors ---------------------------------------------------------------- */

#define SENDFILE(name)                                                                             \
	void drive_##name(void)                                                                    \
	{                                                                                          \
		int in = data_open(O_RDONLY), out = fd_open("copy", O_CREAT | O_WRONLY), p[2];     \
		off64_t at = 16;                                                                   \
                                                                                                   \
		assert_int_equal(ON(hr_wrap_##name(out, in, &at, N)), N);                          \
		assert_int_equal(at, 16 + N);                                                      \
		assert_true(holds("copy", "0123456789"));                                          \
		WANT(HR_OP_##name, .fd = in, .fd2 = out, .path2 = P("copy"), .asked = N,           \
		     .offset = 16, .ret = N);                                                      \
		assert_int_equal(pipe(p), 0);                                                      \
		assert_int_equal(ON(hr_wrap_##name(p[1], in, NULL, N)), N);                        \
		WANT(HR_OP_##name, .fd = in, .asked = N, .ret = N);                                \
		in = open("/proc/self/exe", O_RDONLY);                                             \
		assert_int_equal(ON(hr_wrap_##name(out, in, NULL, N)), N);                         \
		WANT(HR_OP_##name, .path = NULL, .fd2 = out, .path2 = P("copy"), .asked = N,       \
		     .ret = N);                                                                    \
		in = data_open(O_RDONLY);                                                          \
		assert_failed(ON(hr_wrap_##name(in, in, NULL, N)), EBADF);                         \
		WANT(HR_OP_##name, .fd = in, .fd2 = in, .path2 = P("data"), .asked = N,            \
		     .ret = -EBADF);                                                               \
	}

SENDFILE(sendfile)
SENDFILE(sendfile64)

void drive_copy_file_range(void)
{
	int in = data_open(O_RDONLY), out = fd_open("copy", O_CREAT | O_WRONLY);
	off64_t from = 16, to = 2;

	assert_int_equal(ON(hr_wrap_copy_file_range(in, &from, out, &to, N, 0)), N);
	assert_int_equal(size_of("copy"), 2 + N);
	WANT(HR_OP_copy_file_range, .fd = in, .fd2 = out, .path2 = P("copy"), .asked = N,
	     .offset = 16, .offset2 = 2, .ret = N);
	assert_failed(ON(hr_wrap_copy_file_range(in, NULL, out, NULL, N, 1)), EINVAL);
	WANT(HR_OP_copy_file_range, .fd = in, .fd2 = out, .path2 = P("copy"), .asked = N,
	     .ret = -EINVAL, .flags = 1);
}

/* Only the file side of a splice is known. */
void drive_splice(void)
{
	int in = data_open(O_RDONLY), out = fd_open("copy", O_CREAT | O_WRONLY), p[2];
	off64_t from = 16, to = 2;

	assert_int_equal(pipe(p), 0);
	assert_int_equal(ON(hr_wrap_splice(in, &from, p[1], NULL, N, 0)), N);
	WANT(HR_OP_splice, .fd = in, .asked = N, .offset = 16, .ret = N);
	assert_int_equal(ON(hr_wrap_splice(p[0], NULL, out, &to, N, 0)), N);
	WANT(HR_OP_splice, .path = NULL, .fd2 = out, .path2 = P("copy"), .asked = N, .offset2 = 2,
	     .ret = N);
	assert_int_equal(size_of("copy"), 2 + N);
	assert_failed(ON(hr_wrap_splice(p[0], NULL, p[0], NULL, N, 0)), EBADF);
}

/* ---- seek and sync -------------------------------------------------------------------------- */

#define LSEEK(name)                                                                                \
	void drive_##name(void)                                                                    \
	{                                                                                          \
		int fd = data_open(O_RDONLY);                                                      \
                                                                                                   \
		assert_int_equal(ON(hr_wrap_##name(fd, -4, SEEK_END)), TEXT_BYTES - 4);            \
		WANT(HR_OP_##name, .fd = fd, .offset = -4, .ret = TEXT_BYTES - 4,                  \
		     .flags = SEEK_END);                                                           \
		assert_failed(ON(hr_wrap_##name(fd, -4, SEEK_SET)), EINVAL);                       \
		WANT(HR_OP_##name, .fd = fd, .offset = -4, .ret = -EINVAL);                        \
	}

LSEEK(lseek)
LSEEK(lseek64)

#define SYNC(name)                                                                                 \
	void drive_##name(void)                                                                    \
	{                                                                                          \
		int fd = data_open(O_WRONLY);                                                      \
                                                                                                   \
		assert_int_equal(ON(hr_wrap_##name(fd)), 0);                                       \
		WANT(HR_OP_##name, .fd = fd);                                                      \
		close(fd);                                                                         \
		stub_reset();                                                                      \
		assert_failed(ON(hr_wrap_##name(fd)), EBADF);                                      \
	}

SYNC(fsync)
SYNC(fdatasync)
SYNC(syncfs)

void drive_sync_file_range(void)
{
	int fd = data_open(O_WRONLY);

	assert_int_equal(ON(hr_wrap_sync_file_range(fd, 8, N, SYNC_FILE_RANGE_WRITE)), 0);
	WANT(HR_OP_sync_file_range, .fd = fd, .asked = N, .offset = 8,
	     .flags = SYNC_FILE_RANGE_WRITE);
	assert_failed(ON(hr_wrap_sync_file_range(fd, -1, N, 0)), EINVAL);
	WANT(HR_OP_sync_file_range, .fd = fd, .asked = N, .offset = -1, .ret = -EINVAL);
}

/* The whole machine: no file. Not driven on a busy one for long: there is nothing of ours to write. */
void drive_sync(void)
{
	ON_VOID(hr_wrap_sync());
	WANT(HR_OP_sync, .path = NULL);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* drive_fd.c - calls that copy or close descriptors: the table must follow */
#include "drive.h"

/* "data", opened through the wrapper, so that the table knows it under the path given. */
static int known(void)
{
	int fd = ON(hr_wrap_open("data", O_RDONLY));

	WANT(HR_OP_open, .fd = fd, .ret = fd);
	return fd;
}

static void check_copy(int fd)
{
	assert_true(same_file(fd, "data"));
	assert_string_equal(stub_fd_path(fd), P("data"));
}

void drive_dup(void)
{
	int fd = known(), copy = ON(hr_wrap_dup(fd));

	check_copy(copy);
	WANT(HR_OP_dup, .fd = fd, .ret = copy);
	assert_failed(ON(hr_wrap_dup(999)), EBADF);
}

/* The target had another file; a failed call leaves it to be looked at again. */
#define DUP_TO(name, flags_, ...)                                                                  \
	void drive_##name(void)                                                                    \
	{                                                                                          \
		int fd = known(), to = fd_open("other", O_CREAT | O_WRONLY);                       \
                                                                                                   \
		assert_int_equal(ON(hr_wrap_##name(__VA_ARGS__)), to);                             \
		check_copy(to);                                                                    \
		WANT(HR_OP_##name, .fd = fd, .ret = to, .flags = flags_);                          \
		to = -1;                                                                           \
		assert_failed(ON(hr_wrap_##name(__VA_ARGS__)), EBADF);                             \
		WANT(HR_OP_##name, .fd = fd, .ret = -EBADF, .flags = flags_);                      \
		to = known();                                                                      \
		fd = 999;                                                                          \
		assert_failed(ON(hr_wrap_##name(__VA_ARGS__)), EBADF);                             \
		assert_null(stub_fd_path(to));                                                     \
	}

DUP_TO(dup2, 0, fd, to)
DUP_TO(dup3, O_CLOEXEC, fd, to, O_CLOEXEC)

#define FCNTL(name)                                                                                \
	void drive_##name(void)                                                                    \
	{                                                                                          \
		int fd = known(), copy;                                                            \
		struct flock64 lock = {.l_type = F_RDLCK, .l_len = 10};                            \
                                                                                                   \
		assert_int_equal(ON(hr_wrap_##name(fd, F_GETFL)) & O_ACCMODE, O_RDONLY);           \
		WANT(HR_OP_##name, .fd = fd, .ret = fcntl(fd, F_GETFL), .flags = F_GETFL);         \
		copy = ON(hr_wrap_##name(fd, F_DUPFD_CLOEXEC, 500));                               \
		assert_true(copy >= 500);                                                          \
		check_copy(copy);                                                                  \
		WANT(HR_OP_##name, .fd = fd, .ret = copy, .flags = F_DUPFD_CLOEXEC);               \
		copy = ON(hr_wrap_##name(fd, F_DUPFD, 600));                                       \
		check_copy(copy);                                                                  \
		WANT(HR_OP_##name, .fd = fd, .ret = copy, .flags = F_DUPFD);                       \
		assert_int_equal(ON(hr_wrap_##name(fd, F_SETLK, &lock)), 0);                       \
		WANT(HR_OP_##name, .fd = fd, .flags = F_SETLK);                                    \
		assert_failed(ON(hr_wrap_##name(fd, 9999)), EINVAL);                               \
		WANT(HR_OP_##name, .fd = fd, .ret = -EINVAL, .flags = 9999);                       \
	}

FCNTL(fcntl)
FCNTL(fcntl64)

void drive_close_range(void)
{
	int fd = known(), copy = fcntl(fd, F_DUPFD, 700);

	assert_int_equal(ON(hr_wrap_close_range((unsigned)fd, (unsigned)fd, 4)), 0);
	check_copy(fd); /* CLOSE_RANGE_CLOEXEC closes nothing yet */
	assert_int_equal(ON(hr_wrap_close_range((unsigned)fd, (unsigned)copy, 0)), 0);
	assert_null(stub_fd_path(fd));
	assert_int_equal(fcntl(copy, F_GETFD), -1);
	assert_failed(ON(hr_wrap_close_range(9, 3, 0)), EINVAL);
}

void drive_closefrom(void)
{
	int fd = known();

	ON_VOID(hr_wrap_closefrom(fd));
	assert_null(stub_fd_path(fd));
	assert_int_equal(fcntl(fd, F_GETFD), -1);
}

/* The pipe's number is free again, whatever the table held for it. */
void drive_pclose(void)
{
	FILE *fp = popen("exit 3", "r");
	int fd = fileno(fp);

	stub_on();
	hr_fd_set(fd, HR_FILE_IGNORED);
	stub_off();
	assert_int_equal(ON(hr_wrap_pclose(fp)), 3 << 8);
	assert_null(stub_fd_path(fd));
}

/* SPDX-License-Identifier: Apache-2.0 */
/* drive_syscall.c - libc's syscall(): one row, every shape of proto/syscalls.def */
#include "drive.h"

#include <linux/aio_abi.h>
#include <linux/openat2.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <sys/xattr.h>

#define SYS(...) ON(hr_wrap_syscall(__VA_ARGS__))

static void data_calls(void)
{
	char buf[10] = "";
	struct iovec iov[2] = {{buf, 4}, {buf + 4, 6}};
	int fd = data_open(O_RDWR), out = fd_open("copy", O_CREAT | O_WRONLY);
	off64_t from = 16, to = 2;

	assert_int_equal(SYS(SYS_read, fd, buf, sizeof(buf)), 10);
	assert_memory_equal(buf, TEXT, 10);
	WANT(HR_OP_read, .fd = fd, .asked = 10, .ret = 10);
	assert_int_equal(SYS(SYS_pread64, fd, buf, sizeof(buf), 5), 10);
	assert_memory_equal(buf, TEXT + 5, 10);
	WANT(HR_OP_pread64, .fd = fd, .asked = 10, .offset = 5, .ret = 10);
	assert_int_equal(SYS(SYS_preadv, fd, iov, 2, 5L, 0L), 10);
	WANT(HR_OP_preadv, .fd = fd, .asked = 10, .offset = 5, .ret = 10);
	assert_int_equal(SYS(SYS_pwritev2, fd, iov, 2, -1L, -1L, RWF_DSYNC), 10);
	WANT(HR_OP_pwritev2, .fd = fd, .asked = 10, .ret = 10, .flags = RWF_DSYNC);
	assert_int_equal(SYS(SYS_lseek, fd, 3, SEEK_SET), 3);
	WANT(HR_OP_lseek, .fd = fd, .offset = 3, .ret = 3, .flags = SEEK_SET);
	assert_int_equal(SYS(SYS_copy_file_range, fd, &from, out, &to, 10L, 0), 10);
	WANT(HR_OP_copy_file_range, .fd = fd, .fd2 = out, .path2 = P("copy"), .asked = 10,
	     .offset = 16, .offset2 = 2, .ret = 10);
	from = 32;
	assert_int_equal(SYS(SYS_sendfile, out, fd, &from, 10L), 10);
	WANT(HR_OP_sendfile, .fd = fd, .fd2 = out, .path2 = P("copy"), .asked = 10, .offset = 32,
	     .ret = 10);
	assert_failed(SYS(SYS_read, out, buf, sizeof(buf)), EBADF);
	WANT(HR_OP_read, .fd = out, .path = P("copy"), .asked = 10, .ret = -EBADF);
}

static void file_calls(void)
{
	int fd = fd_open("file", O_CREAT | O_RDWR);

	assert_int_equal(SYS(SYS_fallocate, fd, 0, 8L, 100L), 0);
	WANT(HR_OP_fallocate, .fd = fd, .path = P("file"), .asked = 100, .offset = 8);
	assert_int_equal(SYS(SYS_sync_file_range, fd, 8L, 10L, SYNC_FILE_RANGE_WRITE), 0);
	WANT(HR_OP_sync_file_range, .fd = fd, .path = P("file"), .asked = 10, .offset = 8,
	     .flags = SYNC_FILE_RANGE_WRITE);
	assert_int_equal(SYS(SYS_fadvise64, fd, 8L, 100L, POSIX_FADV_DONTNEED), 0);
	WANT(HR_OP_posix_fadvise, .fd = fd, .path = P("file"), .asked = 100, .offset = 8,
	     .flags = POSIX_FADV_DONTNEED);
	assert_int_equal(SYS(SYS_readahead, fd, 8L, 100L), 0);
	WANT(HR_OP_readahead, .fd = fd, .path = P("file"), .asked = 100, .offset = 8);
	assert_int_equal(SYS(SYS_ftruncate, fd, 7L), 0);
	WANT(HR_OP_ftruncate, .fd = fd, .path = P("file"), .asked = 7);
	assert_int_equal(SYS(SYS_symlinkat, "file", root_fd, "link"), 0);
	WANT(HR_OP_symlinkat, .path = P("link"));
	assert_int_equal(SYS(SYS_linkat, root_fd, "file", root_fd, "hard", 0), 0);
	WANT(HR_OP_linkat, .path = P("file"), .path2 = P("hard"));
}

static void table_calls(void)
{
	int fd = (int)SYS(SYS_openat, root_fd, "data", O_RDONLY, 0), copy;

	assert_true(fd >= 0);
	WANT(HR_OP_openat, .fd = fd, .ret = fd, .flags = O_RDONLY);
	assert_string_equal(stub_fd_path(fd), P("data"));
	copy = (int)SYS(SYS_dup, fd);
	assert_string_equal(stub_fd_path(copy), P("data"));
	WANT(HR_OP_dup, .fd = fd, .ret = copy);
	assert_int_equal(SYS(SYS_dup3, fd, 800, O_CLOEXEC), 800);
	assert_string_equal(stub_fd_path(800), P("data"));
	WANT(HR_OP_dup3, .fd = fd, .ret = 800, .flags = O_CLOEXEC);
	assert_int_equal(SYS(SYS_fcntl, fd, F_DUPFD, 900), 900);
	assert_string_equal(stub_fd_path(900), P("data"));
	WANT(HR_OP_fcntl, .fd = fd, .ret = 900, .flags = F_DUPFD);
	assert_int_equal(SYS(SYS_close, fd), 0);
	assert_null(stub_fd_path(fd));
	WANT(HR_OP_close, .fd = fd);
	assert_int_equal(SYS(SYS_close_range, 800, 900, 0), 0);
	assert_null(stub_fd_path(800));
	assert_int_equal(fcntl(900, F_GETFD), -1);
	assert_failed(SYS(SYS_openat, AT_FDCWD, "none", O_RDONLY, 0), ENOENT);
	WANT(HR_OP_openat, .path = P("none"), .ret = -ENOENT);
}

static void name_calls(void)
{
	struct stat st;
	int above;
#ifdef SYS_rename
	long fd;
#endif

	assert_int_equal(SYS(SYS_newfstatat, root_fd, "data", &st, AT_SYMLINK_NOFOLLOW), 0);
	assert_int_equal(st.st_size, TEXT_BYTES);
	WANT(HR_OP_fstatat, .flags = AT_SYMLINK_NOFOLLOW);
	assert_int_equal(SYS(SYS_mkdirat, AT_FDCWD, "dir", 0700), 0);
	WANT(HR_OP_mkdirat, .path = P("dir"), .flags = 0700);
	assert_int_equal(SYS(SYS_renameat2, root_fd, "data", root_fd, "dir/data", 0), 0);
	assert_int_equal(size_of("dir/data"), TEXT_BYTES);
	WANT(HR_OP_renameat2, .path2 = P("dir/data"));
	assert_int_equal(SYS(SYS_unlinkat, root_fd, "dir/data", 0), 0);
	WANT(HR_OP_unlinkat, .path = P("dir/data"));
	assert_int_equal(SYS(SYS_chdir, "dir"), 0);
	want_hook("hr_cwd_changed");
	WANT(HR_OP_chdir, .path = P("dir"));
#ifdef SYS_rename
	fd = SYS(SYS_open, "new", O_CREAT | O_WRONLY, 0604);
	assert_true(fd >= 0);
	WANT(HR_OP_open, .fd = (int)fd, .path = P("dir/new"), .ret = fd,
	     .flags = O_CREAT | O_WRONLY);
	assert_int_equal(SYS(SYS_rename, "new", "newer"), 0);
	assert_int_equal(mode_of("dir/newer"), 0604);
	WANT(HR_OP_rename, .path = P("dir/new"), .path2 = P("dir/newer"));
#endif
	above = fd_open(".", O_RDONLY | O_DIRECTORY);
	assert_int_equal(SYS(SYS_fchdir, above), 0);
	assert_int_equal(faccessat(AT_FDCWD, "dir", F_OK, 0), 0);
	want_hook("hr_cwd_changed");
	WANT(HR_OP_fchdir, .fd = above, .path = stub_root);
}

/* The file system may have no attributes of users: then the calls fail. */
static void attribute_calls(void)
{
	int fd = data_open(O_RDWR);
	bool there = fsetxattr(fd, "user.a", "xyz", 3, 0) == 0;
	int64_t ret = there ? 3 : -errno;
	char value[4];

	assert_int_equal(SYS(SYS_getxattr, P("data"), "user.a", value, sizeof(value)),
			 there ? 3 : -1);
	if (there)
		assert_memory_equal(value, "xyz", 3);
	WANT(HR_OP_getxattr, .asked = 4, .ret = ret);
	assert_int_equal(SYS(SYS_fgetxattr, fd, "user.a", value, sizeof(value)), there ? 3 : -1);
	WANT(HR_OP_fgetxattr, .fd = fd, .asked = 4, .ret = ret);
	assert_int_equal(SYS(SYS_setxattr, P("data"), "user.a", "x", 1L, XATTR_REPLACE),
			 there ? 0 : -1);
	WANT(HR_OP_setxattr, .asked = 1, .flags = XATTR_REPLACE, .ret = there ? 0 : ret);
	assert_failed(SYS(SYS_fremovexattr, fd, "user.b"), there ? ENODATA : (int)-ret);
	WANT(HR_OP_fremovexattr, .fd = fd, .ret = there ? -ENODATA : ret);
}

static void newer_calls(void)
{
	struct open_how how = {.flags = O_WRONLY | O_APPEND};
	int fd = (int)SYS(SYS_openat2, root_fd, "data", &how, sizeof(how));

	assert_true(fd >= 0);
	WANT(HR_OP_openat, .fd = fd, .ret = fd, .flags = O_WRONLY | O_APPEND);
	assert_failed(SYS(SYS_openat2, root_fd, "data", NULL, 0L), EINVAL);
	WANT(HR_OP_openat, .ret = -EINVAL);
	assert_int_equal(SYS(SYS_faccessat2, root_fd, "data", R_OK, AT_SYMLINK_NOFOLLOW), 0);
	WANT(HR_OP_faccessat, .flags = R_OK);
	if (SYS(452L /* fchmodat2 */, root_fd, "data", 0640, 0) == 0) {
		assert_int_equal(mode_of("data"), 0640);
		WANT(HR_OP_fchmodat, .flags = 0640);
	} else {
		WANT(HR_OP_fchmodat, .flags = 0640, .ret = -ENOSYS);
	}
	fd = (int)SYS(SYS_memfd_create, "name", MFD_CLOEXEC);
	assert_true(fd >= 0);
	WANT(HR_OP_memfd_create, .fd = fd, .path = "/memfd:name (deleted)", .ret = fd,
	     .flags = MFD_CLOEXEC);
}

static void map_calls(void)
{
	int fd = data_open(O_RDONLY);
	void *p = (void *)SYS(SYS_mmap, NULL, 4096L, PROT_READ, MAP_SHARED, fd, 0L);

	assert_memory_equal(p, TEXT, TEXT_BYTES);
	WANT(HR_OP_mmap, .fd = fd, .asked = 4096, .offset = 0,
	     .flags = PROT_READ | MAP_SHARED << 4);
	assert_int_equal(SYS(SYS_madvise, p, 4096L, MADV_RANDOM), 0);
	WANT(HR_OP_madvise, .asked = 4096, .flags = MADV_RANDOM);
	assert_int_equal(SYS(SYS_msync, p, 4096L, MS_ASYNC), 0);
	WANT(HR_OP_msync, .asked = 4096, .flags = MS_ASYNC);
	p = (void *)SYS(SYS_mremap, p, 4096L, 8192L, MREMAP_MAYMOVE);
	assert_memory_equal(p, TEXT, TEXT_BYTES);
	WANT(HR_OP_mremap, .asked = 8192, .flags = MREMAP_MAYMOVE);
	assert_int_equal(SYS(SYS_munmap, p, 8192L), 0);
	WANT(HR_OP_munmap, .asked = 8192);
	assert_failed(SYS(SYS_mmap, NULL, 0L, PROT_READ, MAP_SHARED, fd, 0L), EINVAL);
	WANT(HR_OP_mmap, .fd = fd, .offset = 0, .asked = 0, .ret = -EINVAL,
	     .flags = PROT_READ | MAP_SHARED << 4);
}

/* drive_libaio.c has the kinds of requests. */
static void request_calls(void)
{
	char buf[10];
	struct iocb bad = {.aio_lio_opcode = IOCB_CMD_PWRITE,
			   .aio_fildes = (uint32_t)data_open(O_RDONLY),
			   .aio_buf = (uintptr_t)buf,
			   .aio_nbytes = sizeof(buf)};
	struct iocb good = bad, *list[] = {&good, &bad};
	struct io_event event;
	aio_context_t ctx = 0;

	good.aio_lio_opcode = IOCB_CMD_PREAD;
	assert_int_equal(syscall(SYS_io_setup, 2, &ctx), 0);
	assert_int_equal(SYS(SYS_io_submit, ctx, 2L, list), 1);
	WANT(HR_OP_io_submit, .fd = (int)bad.aio_fildes, .asked = 20, .ret = 1);
	assert_failed(SYS(SYS_io_submit, ctx, 1L, list + 1), EBADF);
	WANT(HR_OP_io_submit, .fd = (int)bad.aio_fildes, .asked = 10, .ret = -EBADF);
	assert_int_equal(SYS(SYS_io_getevents, ctx, 1L, 1L, &event, NULL), 1);
	WANT(HR_OP_io_pread, .fd = (int)bad.aio_fildes, .asked = 10, .offset = 0, .ret = 10);
	assert_failed(SYS(SYS_io_getevents, 0L, 1L, 1L, &event, NULL), EINVAL);
	syscall(SYS_io_destroy, ctx);
}

/* The sixth word, numbers that are nobody's, and those that make a process. */
static void other_calls(void)
{
	unsigned word = 5;
	pid_t pid;
	int status;

	assert_int_equal(SYS(SYS_getpid), getpid());
	assert_failed(SYS(-1L), ENOSYS);
	assert_failed(SYS(100000L), ENOSYS);
	assert_failed(SYS(SYS_futex, &word, 9 /* WAIT_BITSET */, 5, NULL, NULL, 0), EINVAL);
	assert_failed(SYS(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, NULL), EFAULT);
	assert_int_equal(SYS(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, 8L), -1);
	want_hook("hr_before_seccomp");
	want_hook("hr_seccomp_failed");
	assert_failed(SYS(SYS_chroot, P("missing")), ENOENT);
	want_hook("hr_before_leaving");
	pid = (pid_t)SYS(SYS_clone, SIGCHLD, 0L, 0L, 0L, 0L);
	if (pid == 0)
		_exit(7);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(WEXITSTATUS(status), 7);
}

void drive_syscall(void)
{
	map_calls();
	request_calls();
	data_calls();
	file_calls();
	attribute_calls();
	newer_calls();
	table_calls();
	name_calls();
	other_calls();
}

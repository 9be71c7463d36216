/* SPDX-License-Identifier: Apache-2.0 */
/* drive_meta.c - calls that ask about or change a name or a file, without data */
#include "drive.h"

#include <sys/file.h>
#include <sys/ioctl.h>
#include <sys/xattr.h>

/* ---- stat ------------------------------------------------------------------------------------- */

#define STAT_PATH(name, type, flags_, right, ...)                                                  \
	void drive_##name(void)                                                                    \
	{                                                                                          \
		const char *path = "data";                                                         \
		struct type st;                                                                    \
                                                                                                   \
		memset(&st, 0, sizeof(st));                                                        \
		assert_int_equal(ON(hr_wrap_##name(__VA_ARGS__)), 0);                              \
		assert_true(right);                                                                \
		WANT(HR_OP_##name, .flags = flags_);                                               \
		path = "none";                                                                     \
		assert_failed(ON(hr_wrap_##name(__VA_ARGS__)), ENOENT);                            \
		WANT(HR_OP_##name, .path = P("none"), .ret = -ENOENT, .flags = flags_);            \
	}

/* An empty path with AT_EMPTY_PATH is the descriptor itself. */
#define STAT_AT(name, type, right, ...)                                                            \
	void drive_##name(void)                                                                    \
	{                                                                                          \
		int dirfd = root_fd, flags = AT_SYMLINK_NOFOLLOW;                                  \
		const char *path = "data";                                                         \
		struct type st;                                                                    \
                                                                                                   \
		memset(&st, 0, sizeof(st));                                                        \
		assert_int_equal(ON(hr_wrap_##name(__VA_ARGS__)), 0);                              \
		assert_true(right);                                                                \
		WANT(HR_OP_##name, .flags = (uint32_t)flags);                                      \
		memset(&st, 0, sizeof(st));                                                        \
		dirfd = data_open(O_RDONLY);                                                       \
		path = "";                                                                         \
		flags = AT_EMPTY_PATH;                                                             \
		assert_int_equal(ON(hr_wrap_##name(__VA_ARGS__)), 0);                              \
		assert_true(right);                                                                \
		WANT(HR_OP_##name, .fd = dirfd, .flags = AT_EMPTY_PATH);                           \
		path = (const char *)-1;                                                           \
		assert_failed(ON(hr_wrap_##name(__VA_ARGS__)), EFAULT);                            \
	}

#define STAT_FD(name, type, right, ...)                                                            \
	void drive_##name(void)                                                                    \
	{                                                                                          \
		int fd = data_open(O_RDONLY);                                                      \
		struct type st;                                                                    \
                                                                                                   \
		memset(&st, 0, sizeof(st));                                                        \
		assert_int_equal(ON(hr_wrap_##name(__VA_ARGS__)), 0);                              \
		assert_true(right);                                                                \
		WANT(HR_OP_##name, .fd = fd);                                                      \
		fd = 999;                                                                          \
		assert_failed(ON(hr_wrap_##name(__VA_ARGS__)), EBADF);                             \
	}

#define SIZED (st.st_size == TEXT_BYTES)
#ifdef __x86_64__
#define LAYOUT 1 /* of struct stat, that of the kernel */
#else
#define LAYOUT 0
#endif

STAT_PATH(stat, stat, 0, SIZED, path, &st)
STAT_PATH(stat64, stat64, 0, SIZED, path, &st)
STAT_PATH(lstat, stat, 0, SIZED, path, &st)
STAT_PATH(lstat64, stat64, 0, SIZED, path, &st)
STAT_PATH(__xstat, stat, 0, SIZED, LAYOUT, path, &st)
STAT_PATH(__xstat64, stat64, 0, SIZED, LAYOUT, path, &st)
STAT_PATH(__lxstat, stat, 0, SIZED, LAYOUT, path, &st)
STAT_PATH(__lxstat64, stat64, 0, SIZED, LAYOUT, path, &st)
STAT_FD(fstat, stat, SIZED, fd, &st)
STAT_FD(fstat64, stat64, SIZED, fd, &st)
STAT_FD(__fxstat, stat, SIZED, LAYOUT, fd, &st)
STAT_FD(__fxstat64, stat64, SIZED, LAYOUT, fd, &st)
STAT_AT(fstatat, stat, SIZED, dirfd, path, &st, flags)
STAT_AT(fstatat64, stat64, SIZED, dirfd, path, &st, flags)
STAT_AT(__fxstatat, stat, SIZED, LAYOUT, dirfd, path, &st, flags)
STAT_AT(__fxstatat64, stat64, SIZED, LAYOUT, dirfd, path, &st, flags)
STAT_AT(statx, statx, st.stx_size == TEXT_BYTES, dirfd, path, flags, STATX_SIZE, &st)
STAT_PATH(statfs, statfs, 0, st.f_bsize > 0, path, &st)
STAT_PATH(statfs64, statfs64, 0, st.f_bsize > 0, path, &st)
STAT_PATH(statvfs, statvfs, 0, st.f_bsize > 0, path, &st)
STAT_PATH(statvfs64, statvfs64, 0, st.f_bsize > 0, path, &st)
STAT_FD(fstatfs, statfs, st.f_bsize > 0, fd, &st)
STAT_FD(fstatfs64, statfs64, st.f_bsize > 0, fd, &st)
STAT_FD(fstatvfs, statvfs, st.f_bsize > 0, fd, &st)
STAT_FD(fstatvfs64, statvfs64, st.f_bsize > 0, fd, &st)
STAT_PATH(access, stat, R_OK, true, path, R_OK)
STAT_PATH(eaccess, stat, R_OK, true, path, R_OK)
STAT_PATH(euidaccess, stat, R_OK, true, path, R_OK)
STAT_PATH(faccessat, stat, W_OK, true, root_fd, path, W_OK, 0)

/* ---- one path, success is 0 --------------------------------------------------------------------- */

/* The call, what it did, its event; then on a name that cannot be: its errno, and the event of that. */
#define META(name, file, flags_, asked_, did, ...)                                                 \
	void drive_##name(void)                                                                    \
	{                                                                                          \
		const char *path = file;                                                           \
                                                                                                   \
		assert_int_equal(ON(hr_wrap_##name(__VA_ARGS__)), 0);                              \
		assert_true(did);                                                                  \
		WANT(HR_OP_##name, .path = P(file), .flags = flags_, .asked = asked_);             \
		path = "none/x";                                                                   \
		assert_failed(ON(hr_wrap_##name(__VA_ARGS__)), ENOENT);                            \
		WANT(HR_OP_##name, .path = P("none/x"), .ret = -ENOENT, .flags = flags_,           \
		     .asked = asked_);                                                             \
	}

#define NO HR_ASKED_NONE
#define TIMES(type, field)                                                                         \
	((const struct type[2]){{.tv_sec = 100, .field = 0}, {.tv_sec = 200, .field = 0}})

static int64_t mtime_of(const char *name)
{
	struct stat64 st = {0};

	fstatat64(AT_FDCWD, P(name), &st, AT_SYMLINK_NOFOLLOW);
	return st.st_mtime;
}

static bool links_to(const char *name, const char *target)
{
	char buf[64];
	ssize_t n = readlinkat(AT_FDCWD, P(name), buf, sizeof(buf));

	return n == (ssize_t)strlen(target) && memcmp(buf, target, (size_t)n) == 0;
}

META(unlink, "data", 0, NO, !exists("data"), path)
META(unlinkat, "data", 0, NO, !exists("data"), root_fd, path, 0)
META(remove, "data", 0, NO, !exists("data"), path)
META(symlink, "link", 0, NO, links_to("link", "data"), "data", path)
META(symlinkat, "link", 0, NO, links_to("link", "data"), "data", root_fd, path)
META(chmod, "data", 0604, NO, mode_of("data") == 0604, path, 0604)
META(lchmod, "data", 0604, NO, mode_of("data") == 0604, path, 0604)
META(fchmodat, "data", 0604, NO, mode_of("data") == 0604, root_fd, path, 0604, 0)
META(chown, "data", 0, NO, true, path, (uid_t)-1, (gid_t)-1)
META(lchown, "data", 0, NO, true, path, (uid_t)-1, (gid_t)-1)
META(fchownat, "data", AT_SYMLINK_NOFOLLOW, NO, true, root_fd, path, (uid_t)-1, (gid_t)-1,
     AT_SYMLINK_NOFOLLOW)
META(truncate, "data", 0, 7, size_of("data") == 7, path, 7)
META(truncate64, "data", 0, 7, size_of("data") == 7, path, 7)
META(utime, "data", 0, NO, mtime_of("data") == 200, path, (&(struct utimbuf){100, 200}))
META(utimes, "data", 0, NO, mtime_of("data") == 200, path, TIMES(timeval, tv_usec))
META(lutimes, "data", 0, NO, mtime_of("data") == 200, path, TIMES(timeval, tv_usec))
META(futimesat, "data", 0, NO, mtime_of("data") == 200, root_fd, path, TIMES(timeval, tv_usec))
META(utimensat, "data", 0, NO, mtime_of("data") == 200, root_fd, path, TIMES(timespec, tv_nsec), 0)
META(mknod, "node", S_IFIFO | 0600, NO, exists("node"), path, S_IFIFO | 0600, 0)
META(mknodat, "node", S_IFIFO | 0600, NO, exists("node"), root_fd, path, S_IFIFO | 0600, 0)
META(__xmknod, "node", S_IFIFO | 0600, NO, exists("node"), 0, path, S_IFIFO | 0600, &(dev_t){0})
META(__xmknodat, "node", S_IFIFO | 0600, NO, exists("node"), 0, root_fd, path, S_IFIFO | 0600,
     &(dev_t){0})
META(mkfifo, "node", 0600, NO, exists("node"), path, 0600)
META(mkfifoat, "node", 0600, NO, exists("node"), root_fd, path, 0600)
META(mkdir, "dir", 0700, NO, exists("dir"), path, 0700)
META(mkdirat, "dir", 0700, NO, exists("dir"), root_fd, path, 0700)

void drive_rmdir(void)
{
	mkdir("dir", 0700);
	assert_int_equal(ON(hr_wrap_rmdir("dir")), 0);
	assert_false(exists("dir"));
	WANT(HR_OP_rmdir, .path = P("dir"));
	assert_failed(ON(hr_wrap_rmdir("data")), ENOTDIR);
	WANT(HR_OP_rmdir, .ret = -ENOTDIR);
}

void drive_name_to_handle_at(void)
{
	struct file_handle handle = {.handle_bytes = 0};
	int mount, saved;

	/* Too small a handle: the answer is its size. */
	assert_int_equal(ON(hr_wrap_name_to_handle_at(root_fd, "data", &handle, &mount, 0)), -1);
	saved = errno;
	assert_true(saved == EOVERFLOW || saved == EOPNOTSUPP);
	WANT(HR_OP_name_to_handle_at, .ret = -saved);
}

#define READLINK(name, ...)                                                                        \
	void drive_##name(void)                                                                    \
	{                                                                                          \
		char buf[16];                                                                      \
		const char *path = "link";                                                         \
                                                                                                   \
		assert_int_equal(symlink("target", "link"), 0);                                    \
		assert_int_equal(ON(hr_wrap_##name(__VA_ARGS__)), 6);                              \
		assert_memory_equal(buf, "target", 6);                                             \
		WANT(HR_OP_##name, .path = P("link"), .asked = sizeof(buf), .ret = 6);             \
		path = "data";                                                                     \
		assert_failed(ON(hr_wrap_##name(__VA_ARGS__)), EINVAL);                            \
		WANT(HR_OP_##name, .asked = sizeof(buf), .ret = -EINVAL);                          \
	}

READLINK(readlink, path, buf, sizeof(buf))
READLINK(__readlink_chk, path, buf, sizeof(buf), sizeof(buf))
READLINK(readlinkat, root_fd, path, buf, sizeof(buf))
READLINK(__readlinkat_chk, root_fd, path, buf, sizeof(buf), sizeof(buf))

/* ---- two paths ---------------------------------------------------------------------------------- */

#define TWO(name, flags_, did, ...)                                                                \
	void drive_##name(void)                                                                    \
	{                                                                                          \
		const char *from = "data";                                                         \
                                                                                                   \
		assert_int_equal(ON(hr_wrap_##name(__VA_ARGS__)), 0);                              \
		assert_true(did);                                                                  \
		WANT(HR_OP_##name, .path2 = P("new"), .flags = flags_);                            \
		from = "none";                                                                     \
		assert_failed(ON(hr_wrap_##name(__VA_ARGS__)), ENOENT);                            \
		WANT(HR_OP_##name, .path = P("none"), .path2 = P("new"), .ret = -ENOENT,           \
		     .flags = flags_);                                                             \
	}

#define MOVED  (!exists("data") && holds("new", TEXT))
#define LINKED (exists("data") && holds("new", TEXT))

TWO(rename, 0, MOVED, from, "new")
TWO(renameat, 0, MOVED, root_fd, from, root_fd, "new")
TWO(renameat2, 1 /* RENAME_NOREPLACE */, MOVED, root_fd, from, root_fd, "new", 1)
TWO(link, 0, LINKED, from, "new")
TWO(linkat, AT_SYMLINK_FOLLOW, LINKED, root_fd, from, root_fd, "new", AT_SYMLINK_FOLLOW)

/* ---- one descriptor ------------------------------------------------------------------------------ */

#define FD(name, flags_, asked_, offset_, did, ...)                                                \
	void drive_##name(void)                                                                    \
	{                                                                                          \
		int fd = data_open(O_RDWR);                                                        \
                                                                                                   \
		assert_int_equal(ON(hr_wrap_##name(__VA_ARGS__)), 0);                              \
		assert_true(did);                                                                  \
		WANT(HR_OP_##name, .fd = fd, .flags = flags_, .asked = asked_, .offset = offset_); \
		fd = 999;                                                                          \
		assert_failed(ON(hr_wrap_##name(__VA_ARGS__)), EBADF);                             \
	}

/* These return the error instead of setting errno. */
#define FD_ERROR(name, flags_, asked_, offset_, did, ...)                                          \
	void drive_##name(void)                                                                    \
	{                                                                                          \
		int fd = data_open(O_RDWR), p[2];                                                  \
                                                                                                   \
		assert_int_equal(ON(hr_wrap_##name(__VA_ARGS__)), 0);                              \
		assert_true(did);                                                                  \
		WANT(HR_OP_##name, .fd = fd, .flags = flags_, .asked = asked_, .offset = offset_); \
		assert_int_equal(pipe(p), 0);                                                      \
		fd = p[1];                                                                         \
		assert_int_equal(ON(hr_wrap_##name(__VA_ARGS__)), ESPIPE);                         \
		fd = root_fd; /* O_PATH: tracked, and good for nothing */                          \
		assert_int_equal(ON(hr_wrap_##name(__VA_ARGS__)), EBADF);                          \
		WANT(HR_OP_##name, .fd = root_fd, .path = stub_root, .flags = flags_,              \
		     .asked = asked_, .offset = offset_, .ret = -EBADF);                           \
	}

#define NP HR_OFFSET_NONE

FD(fchmod, 0604, NO, NP, mode_of("data") == 0604, fd, 0604)
FD(fchown, 0, NO, NP, true, fd, (uid_t)-1, (gid_t)-1)
FD(ftruncate, 0, 7, NP, size_of("data") == 7, fd, 7)
FD(ftruncate64, 0, 7, NP, size_of("data") == 7, fd, 7)
FD(fallocate, 1 /* FALLOC_FL_KEEP_SIZE */, 100, 8, size_of("data") == TEXT_BYTES, fd, 1, 8, 100)
FD(fallocate64, 0, 100, 8, size_of("data") == 108, fd, 0, 8, 100)
FD_ERROR(posix_fallocate, 0, 100, 8, size_of("data") == 108, fd, 8, 100)
FD_ERROR(posix_fallocate64, 0, 100, 8, size_of("data") == 108, fd, 8, 100)
FD_ERROR(posix_fadvise, POSIX_FADV_DONTNEED, 100, 8, true, fd, 8, 100, POSIX_FADV_DONTNEED)
FD_ERROR(posix_fadvise64, POSIX_FADV_DONTNEED, 100, 8, true, fd, 8, 100, POSIX_FADV_DONTNEED)
FD(readahead, 0, 100, 8, true, fd, 8, 100)
FD(futimes, 0, NO, NP, mtime_of("data") == 200, fd, TIMES(timeval, tv_usec))
FD(futimens, 0, NO, NP, mtime_of("data") == 200, fd, TIMES(timespec, tv_nsec))
FD(flock, LOCK_EX, NO, NP, true, fd, LOCK_EX)
FD(lockf, F_LOCK, NO, NP, true, fd, F_LOCK, 10)
FD(lockf64, F_LOCK, NO, NP, true, fd, F_LOCK, 10)

void drive_ioctl(void)
{
	int fd = data_open(O_RDWR), waiting = 0;

	assert_int_equal(ON(hr_wrap_ioctl(fd, FIONREAD, &waiting)), 0);
	assert_int_equal(waiting, TEXT_BYTES);
	WANT(HR_OP_ioctl, .fd = fd, .flags = FIONREAD);
	assert_failed(ON(hr_wrap_ioctl(fd, TCGETS, &waiting)), ENOTTY);
	WANT(HR_OP_ioctl, .fd = fd, .flags = TCGETS, .ret = -ENOTTY);
}

/* ---- extended attributes --------------------------------------------------------------------------- */

#define KEY "user.hr"

/* /tmp may be on a file system without them: the refusal and its event are then the test. */
#define XATTR(name, first_, flags_, asked_, value, ...)                                            \
	void drive_##name(void)                                                                    \
	{                                                                                          \
		int fd = data_open(O_RDWR);                                                        \
		char buf[64] = "v";                                                                \
		bool there = fsetxattr(fd, KEY, "v", 1, 0) == 0;                                   \
		ssize_t r;                                                                         \
		int64_t ret;                                                                       \
                                                                                                   \
		(void)buf;                                                                         \
		r = ON(hr_wrap_##name(__VA_ARGS__));                                               \
		ret = r < 0 ? -errno : r;                                                          \
		assert_true(ret == (value) || (!there && (ret == -ENOTSUP || ret == 0)));          \
		WANT(HR_OP_##name, .fd = first_, .flags = flags_, .asked = asked_, .ret = ret);    \
	}

XATTR(getxattr, -1, 0, 64, 1, "data", KEY, buf, 64)
XATTR(lgetxattr, -1, 0, 64, 1, "data", KEY, buf, 64)
XATTR(fgetxattr, fd, 0, 64, 1, fd, KEY, buf, 64)
XATTR(setxattr, -1, XATTR_REPLACE, 1, 0, "data", KEY, buf, 1, XATTR_REPLACE)
XATTR(lsetxattr, -1, XATTR_REPLACE, 1, 0, "data", KEY, buf, 1, XATTR_REPLACE)
XATTR(fsetxattr, fd, XATTR_REPLACE, 1, 0, fd, KEY, buf, 1, XATTR_REPLACE)
XATTR(listxattr, -1, 0, 64, (ssize_t)sizeof(KEY), "data", buf, 64)
XATTR(llistxattr, -1, 0, 64, (ssize_t)sizeof(KEY), "data", buf, 64)
XATTR(flistxattr, fd, 0, 64, (ssize_t)sizeof(KEY), fd, buf, 64)
XATTR(removexattr, -1, 0, NO, 0, "data", KEY)
XATTR(lremovexattr, -1, 0, NO, 0, "data", KEY)
XATTR(fremovexattr, fd, 0, NO, 0, fd, KEY)

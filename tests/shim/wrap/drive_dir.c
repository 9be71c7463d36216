/* SPDX-License-Identifier: Apache-2.0 */
#include "drive.h"

#define DIR_FLAGS (O_RDONLY | O_DIRECTORY)

static DIR *folder(void)
{
	DIR *dir = opendir(stub_root);

	assert_non_null(dir);
	return dir;
}

void drive_opendir(void)
{
	DIR *dir = ON(hr_wrap_opendir(P("")));
	int fd;

	assert_non_null(dir);
	fd = dirfd(dir);
	assert_string_equal(stub_fd_path(fd), P(""));
	WANT(HR_OP_opendir, .fd = fd, .path = P(""), .ret = fd, .flags = DIR_FLAGS);
	closedir(dir);
	assert_null(ON(hr_wrap_opendir("data")));
	assert_int_equal(errno, ENOTDIR);
	WANT(HR_OP_opendir, .ret = -ENOTDIR, .flags = DIR_FLAGS);
}

void drive_fdopendir(void)
{
	int fd = fd_open(".", DIR_FLAGS), file = data_open(O_RDONLY);
	DIR *dir = ON(hr_wrap_fdopendir(fd));

	assert_non_null(dir);
	WANT(HR_OP_fdopendir, .fd = fd, .path = stub_fd_path(fd), .ret = fd);
	closedir(dir);
	assert_null(ON(hr_wrap_fdopendir(file)));
	assert_int_equal(errno, ENOTDIR);
	WANT(HR_OP_fdopendir, .fd = file, .ret = -ENOTDIR);
}

void drive_closedir(void)
{
	DIR *dir = ON(hr_wrap_opendir(stub_root));
	int fd = dirfd(dir);

	WANT(HR_OP_opendir, .fd = fd, .path = stub_root, .ret = fd, .flags = DIR_FLAGS);
	assert_int_equal(ON(hr_wrap_closedir(dir)), 0);
	WANT(HR_OP_closedir, .fd = fd, .path = stub_root);
	assert_null(stub_fd_path(fd));
	assert_int_equal(fcntl(fd, F_GETFD), -1);
}

/* "data", "." and "..", then the end, which leaves errno alone. */
#define READDIR(name, type)                                                                        \
	void drive_##name(void)                                                                    \
	{                                                                                          \
		DIR *dir = folder();                                                               \
		bool seen = false;                                                                 \
                                                                                                   \
		for (int i = 0; i < 3; i++) {                                                      \
			struct type *entry = ON(hr_wrap_##name(dir));                              \
                                                                                                   \
			assert_non_null(entry);                                                    \
			seen |= strcmp(entry->d_name, "data") == 0;                                \
			WANT(HR_OP_##name, .fd = dirfd(dir), .path = stub_root, .ret = 1);         \
		}                                                                                  \
		assert_true(seen);                                                                 \
		errno = ERANGE;                                                                    \
		stub_on();                                                                         \
		assert_null(hr_wrap_##name(dir));                                                  \
		stub_off();                                                                        \
		assert_int_equal(errno, ERANGE);                                                   \
		WANT(HR_OP_##name, .fd = dirfd(dir), .path = stub_root, .ret = 0);                 \
		closedir(dir);                                                                     \
	}

READDIR(readdir, dirent)
READDIR(readdir64, dirent64)

#define READDIR_R(name, type)                                                                      \
	void drive_##name(void)                                                                    \
	{                                                                                          \
		DIR *dir = folder();                                                               \
		struct type entry, *result = NULL;                                                 \
                                                                                                   \
		for (int i = 0; i < 4; i++) {                                                      \
			assert_int_equal(ON(hr_wrap_##name(dir, &entry, &result)), 0);             \
			assert_int_equal(result != NULL, i < 3);                                   \
			WANT(HR_OP_##name, .fd = dirfd(dir), .path = stub_root, .ret = i < 3);     \
		}                                                                                  \
		closedir(dir);                                                                     \
	}

READDIR_R(readdir_r, dirent)
READDIR_R(readdir64_r, dirent64)

void drive_telldir(void)
{
	DIR *dir = folder();
	long at = ON(hr_wrap_telldir(dir));

	WANT(HR_OP_telldir, .fd = dirfd(dir), .path = stub_root, .ret = at);
	closedir(dir);
}

void drive_seekdir(void)
{
	DIR *dir = folder();
	char first[256];
	long at = telldir(dir);

	strcpy(first, readdir64(dir)->d_name);
	ON_VOID(hr_wrap_seekdir(dir, at));
	assert_string_equal(readdir64(dir)->d_name, first);
	WANT(HR_OP_seekdir, .fd = dirfd(dir), .path = stub_root, .offset = at);
	closedir(dir);
}

void drive_rewinddir(void)
{
	DIR *dir = folder();
	char first[256];

	strcpy(first, readdir64(dir)->d_name);
	ON_VOID(hr_wrap_rewinddir(dir));
	assert_string_equal(readdir64(dir)->d_name, first);
	WANT(HR_OP_rewinddir, .fd = dirfd(dir), .path = stub_root, .offset = 0);
	closedir(dir);
}

void drive_dirfd(void)
{
	DIR *dir = folder();

	assert_int_equal(ON(hr_wrap_dirfd(dir)), dirfd(dir));
	closedir(dir);
}

#define SCANDIR(name, type, path_, ...)                                                            \
	void drive_##name(void)                                                                    \
	{                                                                                          \
		struct type **list;                                                                \
		int n = ON(hr_wrap_##name(__VA_ARGS__ path_, &list, NULL, NULL));                  \
                                                                                                   \
		assert_int_equal(n, 3);                                                            \
		for (int i = 0; i < n; i++)                                                        \
			free(list[i]);                                                             \
		free(list);                                                                        \
		WANT(HR_OP_##name, .path = P(path_), .ret = 3);                                    \
		n = ON(hr_wrap_##name(__VA_ARGS__ "none", &list, NULL, NULL));                     \
		assert_failed(n, ENOENT);                                                          \
		WANT(HR_OP_##name, .path = P("none"), .ret = -ENOENT);                             \
	}
#define AND ,

SCANDIR(scandir, dirent, ".")
SCANDIR(scandir64, dirent64, ".")
SCANDIR(scandirat, dirent, ".", root_fd AND)
SCANDIR(scandirat64, dirent64, ".", root_fd AND)

void drive_getdents64(void)
{
	int fd = fd_open(".", DIR_FLAGS), file = data_open(O_RDONLY);
	char buf[1024];
	ssize_t n = ON(hr_wrap_getdents64(fd, buf, sizeof(buf)));

	assert_true(n > 0);
	WANT(HR_OP_getdents64, .fd = fd, .path = stub_fd_path(fd), .asked = sizeof(buf), .ret = n);
	assert_failed(ON(hr_wrap_getdents64(file, buf, sizeof(buf))), ENOTDIR);
	WANT(HR_OP_getdents64, .fd = file, .asked = sizeof(buf), .ret = -ENOTDIR);
}

void drive_mkdtemp(void)
{
	char path[] = "dXXXXXX", bad[] = "x";

	assert_ptr_equal(ON(hr_wrap_mkdtemp(path)), path);
	assert_true(exists(path));
	WANT(HR_OP_mkdtemp, .path = P(path), .flags = 0700);
	assert_null(ON(hr_wrap_mkdtemp(bad)));
	assert_int_equal(errno, EINVAL);
	WANT(HR_OP_mkdtemp, .path = P("x"), .ret = -EINVAL, .flags = 0700);
}

/* The event names the folder as seen from where the call was made. */
void drive_chdir(void)
{
	mkdir("dir", 0700);
	assert_int_equal(ON(hr_wrap_chdir("dir")), 0);
	assert_int_equal(faccessat(AT_FDCWD, "../data", F_OK, 0), 0);
	want_hook("hr_cwd_changed");
	WANT(HR_OP_chdir, .path = P("dir"));
	assert_failed(ON(hr_wrap_chdir("none")), ENOENT);
	WANT(HR_OP_chdir, .path = P("dir/none"), .ret = -ENOENT);
}

void drive_fchdir(void)
{
	int fd;

	mkdir("dir", 0700);
	fd = fd_open("dir", DIR_FLAGS);
	assert_int_equal(ON(hr_wrap_fchdir(fd)), 0);
	assert_int_equal(faccessat(AT_FDCWD, "../data", F_OK, 0), 0);
	want_hook("hr_cwd_changed");
	WANT(HR_OP_fchdir, .fd = fd, .path = P("dir"));
	fd = data_open(O_RDONLY);
	assert_failed(ON(hr_wrap_fchdir(fd)), ENOTDIR);
	WANT(HR_OP_fchdir, .fd = fd, .ret = -ENOTDIR);
}

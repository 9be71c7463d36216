/* SPDX-License-Identifier: Apache-2.0 */
/* wrap_dir.c - directories, and calls with names that the table cannot describe */
#include "shim/wrap/wrap.h"

/* NOLINTBEGIN(bugprone-macro-parentheses): parameters, types and names cannot have parentheses */

DIR *hr_wrap_opendir(const char *path)
{
	struct hr_op op;
	DIR *dir;
	int fd;

	hr_begin_path(&op, HR_OP_opendir, AT_FDCWD, path, HR_ASKED_NONE);
	dir = HR_REAL(opendir)(path);
	fd = dir != NULL ? HR_REAL(dirfd)(dir) : -1;
	hr_end_open(&op, fd, hr_ret(fd), O_RDONLY | O_DIRECTORY);
	return dir;
}

DIR *hr_wrap_fdopendir(int fd)
{
	struct hr_op op;
	DIR *dir;

	hr_begin_fd(&op, HR_OP_fdopendir, fd, HR_ASKED_NONE, HR_OFFSET_NONE);
	dir = HR_REAL(fdopendir)(fd);
	hr_end(&op, dir != NULL ? fd : hr_ret(-1), 0);
	return dir;
}

/* readdir returns NULL at the end and after an error, which errno distinguishes. */
#define READDIR(name, type)                                                                        \
	struct type *hr_wrap_##name(DIR *dir)                                                      \
	{                                                                                          \
		struct hr_op op;                                                                   \
		struct type *entry;                                                                \
		int saved = errno;                                                                 \
                                                                                                   \
		hr_begin_fd(&op, HR_OP_##name, HR_REAL(dirfd)(dir), HR_ASKED_NONE,                 \
			    HR_OFFSET_NONE);                                                       \
		errno = 0;                                                                         \
		entry = HR_REAL(name)(dir);                                                        \
		hr_end(&op, entry != NULL ? 1 : -(int64_t)errno, 0);                               \
		if (errno == 0)                                                                    \
			errno = saved;                                                             \
		return entry;                                                                      \
	}

READDIR(readdir, dirent)
READDIR(readdir64, dirent64)

#define READDIR_R(name, type)                                                                      \
	int hr_wrap_##name(DIR *dir, struct type *entry, struct type **ret_entry)                  \
	{                                                                                          \
		struct hr_op op;                                                                   \
		int r;                                                                             \
                                                                                                   \
		hr_begin_fd(&op, HR_OP_##name, HR_REAL(dirfd)(dir), HR_ASKED_NONE,                 \
			    HR_OFFSET_NONE);                                                       \
		r = HR_REAL(name)(dir, entry, ret_entry);                                          \
		hr_end(&op, r == 0 ? *ret_entry != NULL : -(int64_t)r, 0);                         \
		return r;                                                                          \
	}

READDIR_R(readdir_r, dirent)
READDIR_R(readdir64_r, dirent64)

char *hr_wrap_mkdtemp(char *path)
{
	struct hr_op op;
	char *r;

	hr_begin_path(&op, HR_OP_mkdtemp, AT_FDCWD, path, HR_ASKED_NONE);
	r = HR_REAL(mkdtemp)(path);
	hr_end(&op, r != NULL ? 0 : hr_ret(-1), 0700);
	return r;
}

#define CHDIR(name, params, args, begin)                                                           \
	int hr_wrap_##name params                                                                  \
	{                                                                                          \
		struct hr_op op;                                                                   \
		int r;                                                                             \
                                                                                                   \
		begin;                                                                             \
		r = HR_REAL(name) args;                                                            \
		if (r == 0)                                                                        \
			hr_cwd_changed();                                                          \
		hr_end(&op, hr_ret(r), 0);                                                         \
		return r;                                                                          \
	}

CHDIR(chdir, (const char *path), (path),
      hr_begin_path(&op, HR_OP_chdir, AT_FDCWD, path, HR_ASKED_NONE))
CHDIR(fchdir, (int fd), (fd), hr_begin_fd(&op, HR_OP_fchdir, fd, HR_ASKED_NONE, HR_OFFSET_NONE))

/* If the first path is empty (AT_EMPTY_PATH), the call gives a name to the open file fromfd. */
int hr_wrap_linkat(int fromfd, const char *from, int tofd, const char *to, int flags)
{
	struct hr_op op;
	int r;

	hr_begin_at(&op, HR_OP_linkat, fromfd, from, flags, HR_ASKED_NONE);
	r = HR_REAL(linkat)(fromfd, from, tofd, to, flags);
	hr_end_two(&op, tofd, to, hr_ret(r), (uint32_t)flags);
	return r;
}

/* The names of shm_open are files in /dev/shm, as /proc/self/fd shows for its descriptors. */
int hr_wrap_shm_unlink(const char *name)
{
	char path[sizeof("/dev/shm/") + NAME_MAX] = "/dev/shm/";
	size_t bytes;
	struct hr_op op;
	int r;

	while (*name == '/')
		name++;
	bytes = strlen(name);
	op.live = false;
	if (bytes <= NAME_MAX) {
		__builtin_memcpy(path + sizeof("/dev/shm/") - 1, name, bytes + 1);
		hr_begin_path(&op, HR_OP_shm_unlink, AT_FDCWD, path, HR_ASKED_NONE);
	}
	r = HR_REAL(shm_unlink)(name);
	hr_end(&op, hr_ret(r), 0);
	return r;
}

/* NOLINTEND(bugprone-macro-parentheses) */

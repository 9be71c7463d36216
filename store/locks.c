/* SPDX-License-Identifier: Apache-2.0 */
/* locks.c - who writes a stream, the file that marks a store, which collector holds the store */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "store/layout.h"

#define CREATE_TRIES	100
#define CREATE_PAUSE_NS 10000000L

/*
 * A lock for F_OFD_SETLK. A reader can query such a lock without taking it. With flock(), a reader
 * would have to take the lock for a moment, and a writer that starts at this moment would assume
 * that another writer has the stream.
 */
static struct flock whole_file(short type)
{
	return (struct flock){.l_type = type, .l_whence = SEEK_SET};
}

/* Whether the file system has no locks: Lustre without the option flock, NFS without its daemon. */
static bool error_of_no_locks(int error)
{
	return error == ENOLCK || error == ENOSYS || error == EOPNOTSUPP;
}

/* Returns 1 if another has the lock of a file, 0 if not, or -ENOLCK. */
static int file_locked(int dir_fd, const char *name)
{
	struct flock lock = whole_file(F_WRLCK);
	int fd = hr_store_open_file(dir_fd, name, O_RDONLY), r;

	if (fd < 0)
		return 0;
	r = fcntl(fd, F_OFD_GETLK, &lock) == 0 ? lock.l_type != F_UNLCK
	    : error_of_no_locks(errno)	       ? -ENOLCK
					       : 0;
	close(fd);
	return r;
}

/* Takes the lock, or changes the one that `fd` has, in one step. -EBUSY: another has the file. */
static int lock_whole(int fd, short type)
{
	struct flock lock = whole_file(type);

	if (fcntl(fd, F_OFD_SETLK, &lock) == 0)
		return 0;
	if (error_of_no_locks(errno))
		return -ENOLCK;
	return errno == EAGAIN || errno == EACCES ? -EBUSY : -errno;
}

/* Opens a file and takes this lock of it. */
static int open_locked(int dir_fd, const char *name, int flags, short type, int *ret_fd)
{
	int fd = hr_store_open_file(dir_fd, name, flags), r;

	if (fd < 0)
		return fd;
	r = lock_whole(fd, type);
	if (r == 0)
		*ret_fd = fd;
	else
		close(fd);
	return r;
}

int hr_lock_file(int dir_fd, const char *name, int flags, int *ret_fd)
{
	return open_locked(dir_fd, name, O_RDWR | flags, F_WRLCK, ret_fd);
}

bool hr_stream_locked(int stream_fd)
{
	return file_locked(stream_fd, HR__LOCK_FILE) != 0;
}

int hr_stream_lock(int stream_fd, int *ret_fd)
{
	return hr_lock_file(stream_fd, HR__LOCK_FILE, O_CREAT, ret_fd);
}

bool hr__store_held(int store_fd)
{
	return file_locked(store_fd, HR__STORE_FILE) > 0;
}

bool hr_store_has_locks(const char *path)
{
	int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	bool has = fd < 0 || file_locked(fd, HR__STORE_FILE) != -ENOLCK;

	if (fd >= 0)
		close(fd);
	return has;
}

/* ---- the store's own file -------------------------------------------------------------------- */

int hr_store_version(int dir_fd)
{
	static const char prefix[] = "headrace store ";
	char text[64], *end;
	unsigned long version;
	int n = hr_store_read_file(dir_fd, HR__STORE_FILE, text, sizeof(text) - 1);

	if (n < 0)
		return n;
	text[n] = '\0';
	if (n == 0)
		return -EAGAIN;
	if (strncmp(text, prefix, sizeof(prefix) - 1) != 0)
		return -ENOTEMPTY;
	version = strtoul(text + sizeof(prefix) - 1, &end, 10);
	if (*end != '\n' || version == 0)
		return -ENOTEMPTY;
	return version > HR_STORE_VERSION ? -EPROTONOSUPPORT : 0;
}

static int write_store_file(int dir_fd, int flags)
{
	char text[64];
	int n = snprintf(text, sizeof(text), "headrace store %u\n", HR_STORE_VERSION);
	int fd = hr_store_open_file(dir_fd, HR__STORE_FILE, O_WRONLY | O_CREAT | flags);
	ssize_t written;
	int r = 0;

	if (fd < 0)
		return fd;
	written = write(fd, text, (size_t)n);
	if (written != n) {
		r = written < 0 ? -errno : -ENOSPC;
		unlinkat(dir_fd, HR__STORE_FILE, 0);
	}
	close(fd);
	return r;
}

/* Whether the folder is empty. Ignores lost+found, which a new file system contains. */
static int folder_empty(int dir_fd)
{
	int fd = openat(dir_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *dir = fd < 0 ? NULL : fdopendir(fd);
	struct dirent *entry;
	int empty = 1;

	if (!dir) {
		int r = -errno;

		if (fd >= 0)
			close(fd);
		return r;
	}
	while (empty && (entry = readdir(dir)) != NULL) { // NOLINT(concurrency-mt-unsafe): own DIR
		const char *name = entry->d_name;

		empty = strcmp(name, ".") == 0 || strcmp(name, "..") == 0 ||
			strcmp(name, "lost+found") == 0;
	}
	closedir(dir);
	return empty;
}

/* Makes a folder a store. If several runs do this, one makes the file, and all others wait. */
static int adopt_folder(int dir_fd)
{
	for (int tries = 0; tries < CREATE_TRIES; tries++) {
		int r = hr_store_version(dir_fd);

		if (r == -EAGAIN) {
			nanosleep(&(struct timespec){.tv_nsec = CREATE_PAUSE_NS}, NULL);
			continue;
		}
		if (r != -ENOENT)
			return r;
		r = folder_empty(dir_fd);
		if (r < 0)
			return r;
		if (r == 0) {
			r = hr_store_version(dir_fd);
			if (r != -EAGAIN)
				return r == -ENOENT ? -ENOTEMPTY : r;
			continue;
		}
		r = write_store_file(dir_fd, O_EXCL);
		if (r != -EEXIST)
			return r;
	}
	return write_store_file(dir_fd, 0); /* the creator died before it wrote the text */
}

int hr__store_make(const char *path)
{
	int fd, r;

	if (strlen(path) > HR_STORE_PATH_MOST)
		return -ENAMETOOLONG;
	r = hr_folder_make(path, 0777);
	if (r < 0)
		return r;
	fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	r = adopt_folder(fd);
	if (r == 0)
		return fd;
	close(fd);
	return r;
}

int hr_store_create(const char *path)
{
	int fd = hr__store_make(path), r;

	if (fd < 0)
		return fd;
	r = hr__store_held(fd) ? -EBUSY : 0;
	close(fd);
	return r;
}

/*
 * Whether folders can be made in the nearest folder above `path` that exists. -ENOENT: `path` could
 * not be made in a folder that exists (in /proc).
 */
static int check_above(const char *path)
{
	char above[HR_STORE_PATH_MOST + 1], *slash;

	memcpy(above, path, strlen(path) + 1);
	slash = strrchr(above, '/');
	if (!slash || slash == above)
		return -ENOENT;
	*slash = '\0';
	if (access(above, F_OK) == 0)
		return -ENOENT;
	while ((slash = strrchr(above, '/')) && slash > above) {
		*slash = '\0';
		if (access(above, W_OK | X_OK) == 0)
			return 0;
		if (errno != ENOENT)
			return -errno;
	}
	return access(slash ? "/" : ".", W_OK | X_OK) < 0 ? -errno : 0;
}

int hr_store_check(const char *path)
{
	int fd, r;

	if (strlen(path) > HR_STORE_PATH_MOST)
		return -ENAMETOOLONG;
	if (mkdir(path, 0700) == 0) /* only mkdir reports all reasons for a failure */
		return rmdir(path) < 0 ? -errno : 0;
	if (errno == ENOENT)
		return check_above(path);
	if (errno != EEXIST)
		return -errno;
	fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	r = hr_store_version(fd);
	if (r == -ENOENT) {
		r = folder_empty(fd);
		r = r == 0 ? -ENOTEMPTY : r;
	}
	if ((r >= 0 || r == -EAGAIN) && faccessat(fd, ".", W_OK | X_OK, AT_EACCESS) < 0)
		r = -errno;
	else if (r >= 0 && hr__store_held(fd))
		r = -EBUSY;
	close(fd);
	return r >= 0 || r == -EAGAIN ? 0 : r;
}

/* ---- a collector's lock ---------------------------------------------------------------------- */

int hr_store_hold(const char *path, int *ret_fd)
{
	int fd = hr__store_make(path), r;

	if (fd < 0)
		return fd;
	r = hr_lock_file(fd, HR__STORE_FILE, 0, ret_fd);
	close(fd);
	return r;
}

int hr_store_hold_read_only(const char *path, int *ret_fd)
{
	int dir_fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC), r;

	if (dir_fd < 0)
		return -errno;
	r = hr_store_version(dir_fd);
	if (r == 0 && hr__store_held(dir_fd))
		r = -EBUSY;
	if (r == 0) /* a write lock needs a file that is open for writing */
		r = open_locked(dir_fd, HR__STORE_FILE, O_RDONLY, F_RDLCK, ret_fd);
	close(dir_fd);
	return r;
}

int hr_store_hold_writable(const char *path, int *fd)
{
	int dir_fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC), writable = -1, r;

	if (dir_fd < 0)
		return -errno;
	/* Two descriptors can have read locks at a time. */
	r = open_locked(dir_fd, HR__STORE_FILE, O_RDWR, F_RDLCK, &writable);
	close(dir_fd);
	if (r < 0)
		return r;
	close(*fd);
	*fd = writable;
	return lock_whole(*fd, F_WRLCK);
}

int hr_store_write_holder(const char *path, const char *text)
{
	int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC), r;

	if (fd < 0)
		return -errno;
	r = hr_store_replace_file(fd, HR__HOLDER_FILE, text, strlen(text), false, NULL);
	close(fd);
	return r;
}

bool hr_store_holder(const char *path, char *ret, size_t bytes)
{
	int store_fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC), n = 0;
	bool held = store_fd >= 0 && hr__store_held(store_fd);

	if (held)
		n = hr_store_read_file(store_fd, HR__HOLDER_FILE, ret, bytes - 1);
	ret[n > 0 ? n : 0] = '\0';
	ret[strcspn(ret, "\n")] = '\0';
	if (store_fd >= 0)
		close(store_fd);
	return held;
}

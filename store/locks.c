/* SPDX-License-Identifier: Apache-2.0 */
/* locks.c - who writes a stream, and which collector holds a store */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "store/layout.h"

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

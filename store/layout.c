/* SPDX-License-Identifier: Apache-2.0 */
#include "store/layout.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static bool plain(const char *name, size_t i)
{
	unsigned char c = (unsigned char)name[i];

	return c < 128 && (isalnum(c) || c == '_' || c == '-' || (c == '.' && i > 0));
}

int hr_name_encode(const char *name, char ret[HR__NAME_BYTES])
{
	size_t n = 0;

	if (!*name)
		return -EINVAL;
	for (size_t i = 0; name[i]; i++) {
		if (n + 4 > HR__NAME_BYTES)
			return -ENAMETOOLONG;
		if (plain(name, i))
			ret[n++] = name[i];
		else
			n += (size_t)snprintf(ret + n, 4, "%%%02X", (unsigned char)name[i]);
	}
	ret[n] = '\0';
	return 0;
}

static int hex_digit(char c)
{
	return c >= '0' && c <= '9' ? c - '0' : c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

void hr_name_decode(const char *encoded, char ret[HR__NAME_BYTES])
{
	size_t n = 0;

	for (; *encoded && n + 1 < HR__NAME_BYTES; encoded++) {
		int high = *encoded == '%' ? hex_digit(encoded[1]) : -1;
		int low = high >= 0 ? hex_digit(encoded[2]) : -1;

		if (low >= 0) {
			ret[n++] = (char)(high << 4 | low);
			encoded += 2;
		} else {
			ret[n++] = *encoded;
		}
	}
	ret[n] = '\0';
}

int hr_stream_name(const struct hr_stream_id *id, char ret[HR__NAME_BYTES])
{
	size_t used;
	int r = hr_name_encode(id->node, ret);

	if (r < 0)
		return r;
	used = strlen(ret);
	r = snprintf(ret + used, HR__NAME_BYTES - used, ".%016" PRIx64 "-%" PRIu32, id->instance,
		     id->attempt);
	return (size_t)r < HR__NAME_BYTES - used ? 0 : -ENAMETOOLONG;
}

uint32_t hr__segment_number(const char *name)
{
	uint32_t n = 0;

	for (int i = 0; i < 6; i++, name++) {
		if (!isdigit((unsigned char)*name))
			return 0;
		n = n * 10 + (uint32_t)(*name - '0');
	}
	return strcmp(name, ".seg") == 0 ? n : 0;
}

/* ---- opening --------------------------------------------------------------------------------- */

int hr__store_open_stat(int dir_fd, const char *name, int flags, struct stat *ret)
{
	int fd = openat(dir_fd, name, flags | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0600), r;

	if (fd < 0)
		return errno == ENXIO ? -ELOOP : -errno; /* a socket, or a FIFO without a reader */
	r = fstat(fd, ret) < 0 ? -errno : S_ISREG(ret->st_mode) ? 0 : -ELOOP;
	if (r == 0)
		return fd;
	close(fd);
	return r;
}

int hr_store_open_file(int dir_fd, const char *name, int flags)
{
	struct stat st;

	return hr__store_open_stat(dir_fd, name, flags, &st);
}

int hr_store_open_folder(int dir_fd, const char *name)
{
	struct stat st;
	int fd = openat(dir_fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC), r;

	if (fd >= 0)
		return fd;
	r = -errno;
	if (r == -ENOTDIR && fstatat(dir_fd, name, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
	    S_ISLNK(st.st_mode))
		r = -ELOOP;
	return r;
}

bool hr_store_is_own(int fd)
{
	struct stat st;

	return fstat(fd, &st) == 0 && st.st_uid == geteuid() &&
	       (st.st_mode & (S_IWGRP | S_IWOTH)) == 0;
}

int hr__store_open(const char *store, const char *path)
{
	char part[HR__NAME_BYTES];
	int fd = open(store, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	fd = fd < 0 ? -errno : fd;
	while (fd >= 0) {
		size_t n = strcspn(path, "/");
		int outer = fd;

		if (n >= sizeof(part)) {
			fd = -ENAMETOOLONG;
		} else if (path[n] == '\0') {
			fd = hr_store_open_file(outer, path, O_RDONLY);
		} else {
			snprintf(part, sizeof(part), "%.*s", (int)n, path);
			fd = hr_store_open_folder(outer, part);
		}
		close(outer);
		if (path[n] == '\0')
			break;
		path += n + 1;
	}
	return fd;
}

/* ---- small files ----------------------------------------------------------------------------- */

int hr_store_read_file(int dir_fd, const char *name, void *ret, size_t bytes)
{
	int fd = hr_store_open_file(dir_fd, name, O_RDONLY), r;
	ssize_t n;

	if (fd < 0)
		return fd;
	n = read(fd, ret, bytes);
	r = n < 0 ? -errno : (int)n;
	close(fd);
	return r;
}

int hr__write_at(int fd, const uint8_t *buf, size_t bytes, uint64_t offset)
{
	while (bytes > 0) {
		ssize_t n = pwrite(fd, buf, bytes, (off_t)offset);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return n < 0 ? -errno : -EIO;
		buf += n;
		offset += (uint64_t)n;
		bytes -= (size_t)n;
	}
	return 0;
}

int hr_store_replace_file(int dir_fd, const char *name, const void *data, size_t bytes, bool sync,
			  const struct timespec times[2])
{
	char fresh[HR__NAME_BYTES];
	int fd, r;

	snprintf(fresh, sizeof(fresh), "%s.new", name);
	fd = hr_store_open_file(dir_fd, fresh, O_WRONLY | O_CREAT | O_TRUNC);
	if (fd < 0)
		return fd;
	r = hr__write_at(fd, data, bytes, 0);
	if (r == 0 && times)
		(void)!futimens(fd, times);
	if (r == 0 && sync && fdatasync(fd) < 0)
		r = -errno;
	close(fd);
	if (r == 0 && renameat(dir_fd, fresh, dir_fd, name) < 0)
		r = -errno;
	if (r < 0)
		unlinkat(dir_fd, fresh, 0);
	return r;
}

int hr__folder_open(int dir_fd, const char *name, int *ret_fd)
{
	int fd;

	if (mkdirat(dir_fd, name, 0700) < 0 && errno != EEXIST)
		return -errno;
	fd = hr_store_open_folder(dir_fd, name);
	if (fd < 0)
		return fd;
	*ret_fd = fd;
	return 0;
}

/* ---- what is there --------------------------------------------------------------------------- */

static bool has_entry(const char *path, const char *name)
{
	char *entry;
	bool has;

	if (asprintf(&entry, "%s/%s", path, name) < 0)
		return true;
	has = access(entry, F_OK) == 0 || (errno != ENOENT && errno != ENOTDIR);
	free(entry);
	return has;
}

bool hr_store_is(const char *path)
{
	return has_entry(path, HR__STORE_FILE) || has_entry(path, "jobs");
}

bool hr_store_has_stream(const char *path, const struct hr_stream_id *id)
{
	char job[HR__NAME_BYTES], name[HR__NAME_BYTES], *folder;
	bool has;

	if (hr_name_encode(id->job, job) < 0 || hr_stream_name(id, name) < 0 ||
	    asprintf(&folder, "%s/jobs/%s", path, job) < 0)
		return false;
	has = has_entry(folder, name);
	free(folder);
	return has;
}

bool hr_store_has_job(const char *path, const char *job)
{
	char name[HR__NAME_BYTES], *jobs;
	bool has;

	if (hr_name_encode(job, name) < 0 || asprintf(&jobs, "%s/jobs", path) < 0)
		return false;
	has = has_entry(jobs, name);
	free(jobs);
	return has;
}

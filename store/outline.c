/* SPDX-License-Identifier: Apache-2.0 */
/* outline.c - hr_store_outline(): what the folders of a store show without reading its data */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "store/folder.h"
#include "store/layout.h"

static uint64_t changed_ns(const struct stat *st)
{
	return (uint64_t)st->st_mtim.tv_sec * UINT64_C(1000000000) + (uint64_t)st->st_mtim.tv_nsec;
}

static uint64_t stream_bytes(int parent_fd, const char *name)
{
	struct hr__folder files;
	struct stat st;
	uint64_t bytes = 0;
	int fd = hr_store_open_folder(parent_fd, name);

	if (fd >= 0 && hr__folder_read(fd, &files) == 0) {
		for (size_t i = 0; i < files.n; i++)
			if (hr__segment_number(files.names[i]) > 0 &&
			    fstatat(fd, files.names[i], &st, AT_SYMLINK_NOFOLLOW) == 0)
				bytes += (uint64_t)st.st_size;
		hr__folder_done(&files);
	}
	if (fd >= 0)
		close(fd);
	return bytes;
}

static uint64_t job_bytes(int jobs_fd, const char *name)
{
	struct hr__folder streams;
	uint64_t bytes = 0;
	int fd = hr_store_open_folder(jobs_fd, name);

	if (fd >= 0 && hr__folder_read(fd, &streams) == 0) {
		for (size_t i = 0; i < streams.n; i++)
			bytes += stream_bytes(fd, streams.names[i]);
		hr__folder_done(&streams);
	}
	if (fd >= 0)
		close(fd);
	return bytes;
}

static void outline_job(int jobs_fd, const char *name, bool sizes, struct hr_store_outline *ret)
{
	struct stat st;

	if (fstatat(jobs_fd, name, &st, AT_SYMLINK_NOFOLLOW) < 0 || !S_ISDIR(st.st_mode))
		return;
	if (sizes)
		ret->bytes += job_bytes(jobs_fd, name);
	if (strcmp(name, HR__NODE_JOB) == 0)
		return;
	ret->jobs++;
	if (ret->jobs > 1 && changed_ns(&st) < ret->changed_ns)
		return;
	ret->changed_ns = changed_ns(&st);
	hr_name_decode(name, ret->last_job);
}

int hr_store_outline(const char *path, bool sizes, struct hr_store_outline *ret)
{
	struct hr__folder jobs;
	struct stat st;
	int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC), jobs_fd, r = 0;

	if (fd < 0)
		return -errno;
	if (fstat(fd, &st) < 0) {
		r = -errno;
		close(fd);
		return r;
	}
	*ret = (struct hr_store_outline){.uid = st.st_uid};
	if (fstatat(fd, HR__STORE_FILE, &st, AT_SYMLINK_NOFOLLOW) < 0)
		r = -errno;
	jobs_fd = r == 0 ? hr_store_open_folder(fd, "jobs") : -1;
	if (r == 0)
		ret->changed_ns = changed_ns(&st);
	if (jobs_fd >= 0 && hr__folder_read(jobs_fd, &jobs) == 0) {
		for (size_t i = 0; i < jobs.n; i++)
			outline_job(jobs_fd, jobs.names[i], sizes, ret);
		hr__folder_done(&jobs);
	}
	if (jobs_fd >= 0)
		close(jobs_fd);
	close(fd);
	return r;
}

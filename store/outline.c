/* SPDX-License-Identifier: Apache-2.0 */
/* outline.c - hr_store_outline(): what the folders of a store show without reading its data */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "store/folder.h"
#include "store/layout.h"
#include "store/segments.h"

static uint64_t changed_ns(const struct stat *st)
{
	return (uint64_t)st->st_mtim.tv_sec * UINT64_C(1000000000) + (uint64_t)st->st_mtim.tv_nsec;
}

static int add_segments(void *context, const char *name, int stream_fd)
{
	uint64_t *bytes = context;
	struct hr_segment_file *segments;
	size_t n;

	(void)name;
	if (hr_segments_list(stream_fd, &segments, &n) < 0)
		return 0;
	for (size_t i = 0; i < n; i++)
		*bytes += segments[i].bytes;
	free(segments);
	return 0;
}

static void add_job(int jobs_fd, const char *name, uint64_t *bytes)
{
	int fd = hr_store_open_folder(jobs_fd, name);

	if (fd < 0)
		return;
	(void)hr_store_each_folder(fd, add_segments, bytes);
	close(fd);
}

static void outline_job(int jobs_fd, const char *name, bool sizes, struct hr_store_outline *ret)
{
	struct stat st;

	if (fstatat(jobs_fd, name, &st, AT_SYMLINK_NOFOLLOW) < 0 || !S_ISDIR(st.st_mode))
		return;
	if (sizes)
		add_job(jobs_fd, name, &ret->bytes);
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

/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/spool/spool_internal.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "store/segments.h"
#include "common/now.h"

#define SEGMENTS 64u /* about how many segments a full spool has */
#define BUSY_MS	 5000u
#define LOOK_US	 10000u

/* ---- the folder ------------------------------------------------------------------------------ */

static uint64_t segment_bytes(uint64_t limit)
{
	uint64_t bytes = limit / SEGMENTS;

	if (!limit || bytes > HR_SPOOL_SEGMENT_MOST)
		return HR_SPOOL_SEGMENT_MOST;
	return bytes < HR_SPOOL_SEGMENT_LEAST ? HR_SPOOL_SEGMENT_LEAST : bytes;
}

int hr_spool_new(const char *path, uint64_t limit_bytes, struct hr_spool **ret)
{
	struct hr_spool *s;
	int r = hr_store_create(path);

	if (r)
		return r;
	s = calloc(1, sizeof(*s));
	if (!s)
		return -ENOMEM;
	pthread_mutex_init(&s->lock, NULL);
	s->limit_bytes = limit_bytes;
	s->segment_bytes = segment_bytes(limit_bytes);
	s->path = strdup(path);
	s->dir_fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (!s->path || s->dir_fd < 0) {
		r = s->path ? -errno : -ENOMEM;
		hr_spool_free(s);
		return r;
	}
	*ret = s;
	return 0;
}

void hr_spool_free(struct hr_spool *s)
{
	if (!s)
		return;
	if (s->dir_fd >= 0)
		close(s->dir_fd);
	pthread_mutex_destroy(&s->lock);
	free(s->path);
	free(s->aim);
	free(s);
}

const char *hr_spool_path(const struct hr_spool *s)
{
	return s->path;
}

int hr_spool_lock(struct hr_spool *s, int *ret_fd)
{
	struct flock whole = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
	int fd = hr_store_open_file(s->dir_fd, HR__SPOOL_LOCK, O_RDWR | O_CREAT);

	if (fd < 0)
		return fd;
	while (fcntl(fd, F_OFD_SETLKW, &whole) < 0) {
		int r = -errno;

		if (r == -EINTR)
			continue;
		close(fd);
		return r;
	}
	*ret_fd = fd;
	return 0;
}

struct each {
	hr_spool_see *see;
	void *arg;
	const char *job; /* the folder of the job that is being read */
};

static int see_stream(void *context, const char *name, int dir_fd)
{
	const struct each *each = context;
	char folder[600];

	if (snprintf(folder, sizeof(folder), "jobs/%s/%s", each->job, name) >= (int)sizeof(folder))
		return 0;
	return each->see(each->arg, folder, dir_fd);
}

static int see_job(void *context, const char *name, int dir_fd)
{
	struct each *each = context;

	each->job = name;
	return hr_store_each_folder(dir_fd, see_stream, each);
}

int hr_spool_each(struct hr_spool *s, hr_spool_see *see, void *arg)
{
	struct each each = {.see = see, .arg = arg};
	int fd = openat(s->dir_fd, "jobs", O_RDONLY | O_DIRECTORY | O_CLOEXEC), r;

	if (fd < 0)
		return errno == ENOENT ? 0 : -errno;
	r = hr_store_each_folder(fd, see_job, &each);
	close(fd);
	return r;
}

uint64_t hr__spool_acked(int stream_dir_fd)
{
	char text[32];
	int n = hr_store_read_file(stream_dir_fd, HR__SPOOL_ACKED, text, sizeof(text) - 1);

	if (n <= 0)
		return 0;
	text[n] = '\0';
	return strtoull(text, NULL, 10);
}

/* ---- the stream that this process writes ----------------------------------------------------- */

/* Writes the collectors, then the secret, before any frame. The secret completes the folder. */
static int write_stream_files(const struct hr_spool *s, const char *dir)
{
	uint8_t secret[HR_SPOOL_SECRET_BYTES];
	int dir_fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC), r = 0;

	if (dir_fd < 0)
		return -errno;
	if (s->aim)
		r = hr_store_replace_file(dir_fd, HR__SPOOL_AIM, s->aim, strlen(s->aim), true,
					  NULL);
	if (!r && getrandom(secret, sizeof(secret), 0) != (ssize_t)sizeof(secret))
		r = -EIO;
	if (!r)
		r = hr_store_replace_file(dir_fd, HR__SPOOL_SECRET, secret, sizeof(secret), true,
					  NULL);
	close(dir_fd);
	return r;
}

int hr_spool_aim(struct hr_spool *s, const char *collectors)
{
	char *aim = strdup(collectors);

	if (!aim)
		return -ENOMEM;
	free(s->aim);
	s->aim = aim;
	return 0;
}

static bool has_secret(const char *dir)
{
	char path[4200];

	snprintf(path, sizeof(path), "%s/" HR__SPOOL_SECRET, dir);
	return access(path, F_OK) == 0;
}

/*
 * The caller holds the spool's lock; otherwise, another process might take the new folder for a
 * finished one and remove it.
 */
static int open_stream(struct hr_spool *s, const struct hr_stream_id *id, struct hr_writer **ret)
{
	struct hr_writer *w;
	int r = hr_writer_open(s->path, id, &w, NULL);

	if (r)
		return r;
	hr_writer_segment_bytes(w, s->segment_bytes);
	/* No collector accepts a stream without a secret. The uplink reports such a stream. */
	if (hr_writer_mark(w) <= 1 && !has_secret(hr_writer_dir(w)))
		r = write_stream_files(s, hr_writer_dir(w));
	if (r) {
		hr_writer_close(w);
		return r;
	}
	*ret = w;
	return 0;
}

static int try_open_stream(struct hr_spool *s, const struct hr_stream_id *id,
			   struct hr_writer **ret)
{
	int lock = -1, r = hr_spool_lock(s, &lock);

	if (r)
		return r;
	r = open_stream(s, id, ret);
	close(lock);
	return r;
}

int hr_spool_open_stream(struct hr_spool *s, const struct hr_stream_id *id, struct hr_writer **ret)
{
	uint64_t until = hr_now_ms(CLOCK_MONOTONIC) + BUSY_MS;
	int r;

	/* A killed writer holds the stream's lock until the kernel has freed its memory. */
	while ((r = try_open_stream(s, id, ret)) == -EBUSY && hr_now_ms(CLOCK_MONOTONIC) < until)
		usleep(LOOK_US);
	if (r)
		return r;
	pthread_mutex_lock(&s->lock);
	s->has_live = s->live.open = true;
	s->live.mark = hr_writer_mark(*ret);
	snprintf(s->live.folder, sizeof(s->live.folder), "%s",
		 hr_writer_dir(*ret) + strlen(s->path) + 1);
	pthread_mutex_unlock(&s->lock);
	return 0;
}

/* The caller holds s->lock, so that no old `changed` runs after hr_spool_watch. */
static void spool_notify(struct hr_spool *s)
{
	if (s->changed)
		s->changed(s->changed_arg);
}

void hr_spool_appended(struct hr_spool *s, uint64_t mark)
{
	pthread_mutex_lock(&s->lock);
	if (mark != s->live.mark) {
		s->live.mark = mark;
		spool_notify(s);
	}
	pthread_mutex_unlock(&s->lock);
}

void hr_spool_closed(struct hr_spool *s)
{
	pthread_mutex_lock(&s->lock);
	s->live.open = false;
	spool_notify(s);
	pthread_mutex_unlock(&s->lock);
}

void hr_spool_watch(struct hr_spool *s, void (*changed)(void *arg), void *arg)
{
	pthread_mutex_lock(&s->lock);
	s->changed = changed;
	s->changed_arg = arg;
	pthread_mutex_unlock(&s->lock);
}

bool hr_spool_live(struct hr_spool *s, struct hr_spool_live *ret)
{
	bool has;

	pthread_mutex_lock(&s->lock);
	has = s->has_live;
	*ret = s->live;
	pthread_mutex_unlock(&s->lock);
	return has;
}

void hr_spool_stats(struct hr_spool *s, struct hr_spool_stats *ret)
{
	pthread_mutex_lock(&s->lock);
	*ret = s->stats;
	pthread_mutex_unlock(&s->lock);
}

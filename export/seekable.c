/* SPDX-License-Identifier: Apache-2.0 */
#include "export/seekable.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/text.h"

#define COPY_BYTES (256u << 10)

/* Returns the name of an open file (malloc'ed). NULL: it has none, because it is a pipe. */
static char *file_name(int fd, const struct stat *st)
{
	char link[64], name[PATH_MAX];
	struct stat named;
	ssize_t n;

	snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
	n = readlink(link, name, sizeof(name) - 1);
	if (n <= 0)
		return NULL;
	name[n] = '\0';
	if (lstat(name, &named) < 0 || named.st_dev != st->st_dev || named.st_ino != st->st_ino)
		return NULL;
	return strdup(name);
}

/* Returns the name of the output (malloc'ed) if it is a new file. */
static char *output_name(int fd)
{
	struct stat st;

	if (fd < 0 || fstat(fd, &st) < 0 || !S_ISREG(st.st_mode) || st.st_size != 0 ||
	    lseek(fd, 0, SEEK_CUR) != 0)
		return NULL;
	return file_name(fd, &st);
}

int hr_temporary_failed(struct hr_export *x, int err)
{
	return hr_text_fail(
	    err, &x->error,
	    "cannot write temporary data: %s: set TMPDIR (at a collector: "
	    "query_spill) to a folder with more space, or export less with --max-size",
	    strerrordesc_np(-err));
}

int hr_temporary_file(struct hr_export *x, char **ret_path)
{
	const char *folder = hr_asking_spill(x->asking);
	char *path;
	int fd;

	if (folder == NULL)
		return hr_text_fail(-ENOENT, &x->error,
				    "this export needs a folder for temporary files: set TMPDIR "
				    "(at a collector: query_spill) to a folder with enough space");
	if (asprintf(&path, "%s/export-XXXXXX", folder) < 0)
		return -ENOMEM;
	fd = mkostemp(path, O_CLOEXEC);
	if (fd < 0)
		fd = hr_temporary_failed(x, -errno);
	else if (ret_path == NULL)
		unlink(path);
	if (fd >= 0 && ret_path != NULL)
		*ret_path = path;
	else
		free(path);
	return fd;
}

int hr_seekable_open(struct hr_export *x, FILE *to, struct hr_seekable *ret)
{
	struct hr_seekable s = {.to = to, .fd = fileno(to)};

	s.path = output_name(s.fd);
	s.temporary = s.path == NULL;
	if (s.temporary)
		s.fd = hr_temporary_file(x, &s.path);
	if (s.fd < 0)
		return s.fd;
	*ret = s;
	return 0;
}

void hr_seekable_hide(const struct hr_seekable *s)
{
	if (s->temporary)
		unlink(s->path);
}

static int copy_file(int from, FILE *to)
{
	char *piece = malloc(COPY_BYTES);
	off_t at = 0;
	ssize_t n = 0;
	int r = 0;

	if (piece == NULL)
		return -ENOMEM;
	while (r == 0 && (n = pread(from, piece, COPY_BYTES, at)) > 0) {
		if (fwrite(piece, 1, (size_t)n, to) != (size_t)n)
			r = errno != 0 ? -errno : -EIO;
		at += n;
	}
	if (r == 0 && n < 0)
		r = -errno;
	free(piece);
	return r;
}

int hr_seekable_close(struct hr_seekable *s, int err)
{
	if (err == 0 && s->temporary)
		err = copy_file(s->fd, s->to);
	else if (err == 0 && lseek(s->fd, 0, SEEK_END) < 0)
		err = -errno;
	if (s->temporary)
		close(s->fd);
	free(s->path);
	*s = (struct hr_seekable){0};
	return err;
}

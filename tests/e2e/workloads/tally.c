/* SPDX-License-Identifier: Apache-2.0 */
#include "tally.h"

#include <errno.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define ROWS 4096
#define FDS  (1 << 17)

struct row {
	const char *op;
	char *path;
	uint64_t calls;
	uint64_t bytes;
};

static struct row rows[ROWS];
static size_t n_rows;
static char *fd_path[FDS];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static char scratch[1 << 20]; /* shared by all threads: what is in it does not matter */

void die(const char *format, ...)
{
	int saved = errno;
	va_list args;

	va_start(args, format);
	// NOLINTNEXTLINE(clang-analyzer-valist.Uninitialized): va_start is one line above
	vfprintf(stderr, format, args);
	va_end(args);
	fprintf(stderr, " (%s)\n", strerror(saved));
	_exit(1);
}

static struct row *row_of(const char *op, const char *path)
{
	for (size_t i = 0; i < n_rows; i++)
		if (strcmp(rows[i].op, op) == 0 && strcmp(rows[i].path, path) == 0)
			return &rows[i];
	CHECK(n_rows < ROWS);
	rows[n_rows] = (struct row){.op = op, .path = strdup(path)};
	return &rows[n_rows++];
}

void tally_add_many(const char *op, const char *path, uint64_t calls, uint64_t bytes)
{
	pthread_mutex_lock(&lock);
	struct row *row = row_of(op, path);
	row->calls += calls;
	row->bytes += bytes;
	pthread_mutex_unlock(&lock);
}

void tally_add(const char *op, const char *path, uint64_t bytes)
{
	tally_add_many(op, path, 1, bytes);
}

void tally_child(void)
{
	pthread_mutex_init(&lock, NULL);
	n_rows = 0;
}

static void append_row(FILE *out, const struct row *row)
{
	fprintf(out, "%d %s ", (int)getpid(), row->op);
	for (const char *p = row->path; *p != '\0'; p++)
		fprintf(out, "%02x", (unsigned char)*p);
	fprintf(out, " %llu %llu\n", (unsigned long long)row->calls,
		(unsigned long long)row->bytes);
}

void tally_flush(void)
{
	const char *log = getenv("E2E_TALLY");
	char *text = NULL;
	size_t bytes = 0;

	CHECK(log != NULL);
	FILE *out = open_memstream(&text, &bytes);
	for (size_t i = 0; i < n_rows; i++)
		append_row(out, &rows[i]);
	fclose(out);
	int fd = open(log, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
	CHECK(fd >= 0 && write(fd, text, bytes) == (ssize_t)bytes && close(fd) == 0);
	free(text);
	n_rows = 0;
}

void tally_name(int fd, const char *path)
{
	CHECK(fd >= 0 && fd < FDS);
	fd_path[fd] = path == NULL ? NULL : strdup(path);
}

const char *tally_path(int fd)
{
	CHECK(fd >= 0 && fd < FDS && fd_path[fd] != NULL);
	return fd_path[fd];
}

int t_openat(int dirfd, const char *given, int flags, const char *name)
{
	int fd = openat(dirfd, given, flags, 0600);

	CHECK(fd >= 0);
	tally_name(fd, name);
	tally_add("openat", name, 0);
	return fd;
}

int t_open(const char *path, int flags)
{
	int fd = open(path, flags, 0600);

	CHECK(fd >= 0);
	tally_name(fd, path);
	tally_add("open", path, 0);
	return fd;
}

size_t t_read(int fd, size_t bytes)
{
	CHECK(bytes <= sizeof(scratch));
	ssize_t got = read(fd, scratch, bytes);

	CHECK(got >= 0);
	tally_add("read", tally_path(fd), (uint64_t)got);
	return (size_t)got;
}

void t_pread(int fd, size_t bytes, off_t offset)
{
	CHECK(bytes <= sizeof(scratch));
	ssize_t got = pread(fd, scratch, bytes, offset);

	CHECK(got >= 0);
	tally_add("pread", tally_path(fd), (uint64_t)got);
}

void t_write(int fd, size_t bytes)
{
	CHECK(bytes <= sizeof(scratch));
	CHECK(write(fd, scratch, bytes) == (ssize_t)bytes);
	tally_add("write", tally_path(fd), bytes);
}

void t_lseek(int fd, off_t offset)
{
	CHECK(lseek(fd, offset, SEEK_SET) == offset);
	tally_add("lseek", tally_path(fd), 0);
}

void t_fstat(int fd)
{
	struct stat st;

	CHECK(fstat(fd, &st) == 0);
	tally_add("fstat", tally_path(fd), 0);
}

void t_close(int fd)
{
	const char *path = tally_path(fd);

	tally_name(fd, NULL);
	CHECK(close(fd) == 0);
	tally_add("close", path, 0);
}

void t_slurp(const char *path)
{
	int fd = t_open(path, O_RDONLY);

	t_fstat(fd);
	while (t_read(fd, 4096) > 0)
		;
	t_close(fd);
}

const char *data_file(const char *folder, unsigned i)
{
	static char paths[16][TALLY_PATH_BYTES];
	static unsigned turn;
	char *path = paths[turn++ % 16];

	CHECK(snprintf(path, TALLY_PATH_BYTES, "%s/f%03u", folder, i) < TALLY_PATH_BYTES);
	return path;
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "shim/core/linkname.h"

#include <string.h>

#define DELETED " (deleted)"
#define MEMFD	"/memfd:"
#define TMPFILE "#tmpfile"

char *hr_put_digits(char *to, uint64_t n)
{
	char digits[20];
	int count = 0;

	do {
		digits[count++] = (char)('0' + n % 10);
		n /= 10;
	} while (n > 0);
	while (count > 0)
		*to++ = digits[--count];
	return to;
}

void hr__linkname_proc(char buf[32], int fd)
{
	static const char folder[] = "/proc/thread-self/fd/";

	memcpy(buf, folder, sizeof(folder) - 1);
	*hr_put_digits(buf + sizeof(folder) - 1, (uint32_t)fd) = '\0';
}

void hr__linkname_stat(char buf[32], int pid)
{
	memcpy(buf, "/proc/", sizeof("/proc/"));
	memcpy(hr_put_digits(buf + 6, (uint32_t)pid), "/stat", 6);
}

/* If the base name is "#" and digits, returns the length of the folder's path, otherwise 0. */
static size_t tmpfile_folder(const char *text, size_t bytes)
{
	size_t at = bytes;

	while (at > 0 && text[at - 1] >= '0' && text[at - 1] <= '9')
		at--;
	return at < bytes && at >= 2 && text[at - 1] == '#' && text[at - 2] == '/' ? at - 1 : 0;
}

size_t hr__linkname_clean(char *text, size_t bytes, bool unlinked)
{
	const size_t n_deleted = sizeof(DELETED) - 1;
	bool marked =
	    bytes > n_deleted && memcmp(text + bytes - n_deleted, DELETED, n_deleted) == 0;
	bool memfd = bytes >= sizeof(MEMFD) - 1 && memcmp(text, MEMFD, sizeof(MEMFD) - 1) == 0;
	size_t folder;

	if (bytes == 0 || text[0] != '/')
		return 0;
	if (marked && (unlinked || memfd))
		bytes -= n_deleted;
	if (memfd && marked) {
		memmove(text, text + 1, --bytes);
		return bytes;
	}
	folder = unlinked ? tmpfile_folder(text, bytes) : 0;
	if (folder > 0) {
		memcpy(text + folder, TMPFILE, sizeof(TMPFILE) - 1);
		bytes = folder + sizeof(TMPFILE) - 1;
	}
	return bytes;
}

static bool skip(const char **at, const char *end, const char *text)
{
	const char *from = *at;

	while (*text != '\0' && from < end && *from == *text) {
		from++;
		text++;
	}
	if (*text != '\0')
		return false;
	*at = from;
	return true;
}

static bool skip_digits(const char **at, const char *end)
{
	const char *from = *at;

	while (*at < end && **at >= '0' && **at <= '9')
		(*at)++;
	return *at > from;
}

static bool skip_process(const char **at, const char *end)
{
	if (!skip(at, end, "self/") && !skip(at, end, "thread-self/") &&
	    !(skip_digits(at, end) && skip(at, end, "/")))
		return false;
	return !skip(at, end, "task/") || (skip_digits(at, end) && skip(at, end, "/"));
}

bool hr__linkname_is_open(const char *path, size_t bytes)
{
	const char *end = path + bytes;
	bool found;

	if (skip(&path, end, "/dev/std"))
		found =
		    skip(&path, end, "in") || skip(&path, end, "out") || skip(&path, end, "err");
	else if (skip(&path, end, "/dev/fd/"))
		found = skip_digits(&path, end);
	else if (skip(&path, end, "/proc/") && skip_process(&path, end))
		found = skip(&path, end, "cwd") || skip(&path, end, "root") ||
			(skip(&path, end, "fd/") && skip_digits(&path, end));
	else
		return false;
	return found && (path == end || *path == '/');
}

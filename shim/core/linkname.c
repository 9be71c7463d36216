/* SPDX-License-Identifier: Apache-2.0 */
#include "shim/core/linkname.h"

#include <string.h>

#define DELETED " (deleted)"
#define MEMFD	"/memfd:"
#define TMPFILE "#tmpfile"

static void numbered(char buf[32], const char *before, int number, const char *after)
{
	char digits[12];
	size_t n = 0, at = 0;

	while (before[at] != '\0') {
		buf[at] = before[at];
		at++;
	}
	do {
		digits[n++] = (char)('0' + number % 10);
		number /= 10;
	} while (number > 0);
	while (n > 0)
		buf[at++] = digits[--n];
	memcpy(buf + at, after, strlen(after) + 1);
}

void hr__linkname_proc(char buf[32], int fd)
{
	numbered(buf, "/proc/self/fd/", fd, "");
}

void hr__linkname_stat(char buf[32], int pid)
{
	numbered(buf, "/proc/", pid, "/stat");
}

/* If the base name is "#" and digits, returns the length of the folder part, otherwise 0. */
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
		/* The name fits, because it is shorter than the " (deleted)" that was removed. */
		memcpy(text + folder, TMPFILE, sizeof(TMPFILE) - 1);
		bytes = folder + sizeof(TMPFILE) - 1;
	}
	return bytes;
}

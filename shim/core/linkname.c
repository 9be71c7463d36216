/* SPDX-License-Identifier: Apache-2.0 */
#include "shim/core/linkname.h"

#include <string.h>

#define DELETED " (deleted)"
#define MEMFD	"/memfd:"
#define TMPFILE "#tmpfile"

char *hr__put_digits(char *to, uint64_t n)
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
	memcpy(buf, "/proc/self/fd/", 14);
	*hr__put_digits(buf + 14, (uint32_t)fd) = '\0';
}

void hr__linkname_stat(char buf[32], int pid)
{
	memcpy(buf, "/proc/", sizeof("/proc/"));
	memcpy(hr__put_digits(buf + 6, (uint32_t)pid), "/stat", 6);
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

/* SPDX-License-Identifier: Apache-2.0 */
/* Values of arguments: numbers, names of constants, strings, descriptors. */
#include <ctype.h>
#include <fcntl.h>
#include <linux/close_range.h>
#include <linux/falloc.h>
#include <linux/fiemap.h>
#include <linux/fs.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "import/strace/strace_line.h"

/* ---- numbers and constants ------------------------------------------------------------------- */

static int digit_value(char c, unsigned base)
{
	int v = c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;

	return v >= 0 && (unsigned)v < base ? v : -1;
}

bool hr__strace_number(struct hr_strace_text t, int64_t *ret, struct hr_strace_text *ret_rest)
{
	bool negative = t.n && *t.p == '-';
	size_t i = negative, first;
	unsigned base = 10;
	uint64_t v = 0;

	if (t.n - i > 1 && t.p[i] == '0') {
		base = t.p[i + 1] == 'x' ? 16 : isdigit((unsigned char)t.p[i + 1]) ? 8 : 10;
		i += base == 16 ? 2 : 0;
	}
	for (first = i; i < t.n && digit_value(t.p[i], base) >= 0; i++)
		if (__builtin_mul_overflow(v, base, &v) ||
		    __builtin_add_overflow(v, (unsigned)digit_value(t.p[i], base), &v))
			return false;
	if (i == first)
		return false;
	*ret = negative ? (int64_t)(0 - v) : (int64_t)v;
	*ret_rest = (struct hr_strace_text){t.p + i, t.n - i};
	return true;
}

#define CONSTANT(name)                                                                             \
	{                                                                                          \
#name, (uint32_t)(name)                                                            \
	}

static const struct {
	const char *name;
	uint32_t value;
} constants[] = {
    /* clang-format off */
    CONSTANT(O_RDONLY), CONSTANT(O_WRONLY), CONSTANT(O_RDWR), CONSTANT(O_CREAT), CONSTANT(O_EXCL),
    CONSTANT(O_NOCTTY), CONSTANT(O_TRUNC), CONSTANT(O_APPEND), CONSTANT(O_NONBLOCK), CONSTANT(O_DSYNC),
    CONSTANT(O_SYNC), CONSTANT(O_DIRECT), CONSTANT(O_DIRECTORY), CONSTANT(O_NOFOLLOW),
    CONSTANT(O_NOATIME), CONSTANT(O_CLOEXEC), CONSTANT(O_PATH), CONSTANT(O_TMPFILE), {"O_LARGEFILE", 0},
    CONSTANT(SEEK_SET), CONSTANT(SEEK_CUR), CONSTANT(SEEK_END), CONSTANT(SEEK_DATA), CONSTANT(SEEK_HOLE),
    CONSTANT(AT_SYMLINK_NOFOLLOW), CONSTANT(AT_REMOVEDIR), CONSTANT(AT_SYMLINK_FOLLOW),
    CONSTANT(AT_NO_AUTOMOUNT), CONSTANT(AT_EMPTY_PATH), {"AT_STATX_SYNC_AS_STAT", 0},
    CONSTANT(AT_STATX_FORCE_SYNC), CONSTANT(AT_STATX_DONT_SYNC), CONSTANT(AT_EACCESS),
    CONSTANT(F_OK), CONSTANT(R_OK), CONSTANT(W_OK), CONSTANT(X_OK),
    CONSTANT(F_DUPFD), CONSTANT(F_GETFD), CONSTANT(F_SETFD), CONSTANT(F_GETFL), CONSTANT(F_SETFL),
    CONSTANT(F_GETLK), CONSTANT(F_SETLK), CONSTANT(F_SETLKW), CONSTANT(F_DUPFD_CLOEXEC),
    CONSTANT(F_OFD_GETLK), CONSTANT(F_OFD_SETLK), CONSTANT(F_OFD_SETLKW), CONSTANT(F_SETLEASE),
    CONSTANT(F_GETLEASE), CONSTANT(F_SETPIPE_SZ), CONSTANT(F_GETPIPE_SZ), CONSTANT(F_ADD_SEALS),
    CONSTANT(F_GET_SEALS), CONSTANT(F_GET_RW_HINT), CONSTANT(F_SET_RW_HINT),
    CONSTANT(F_GET_FILE_RW_HINT), CONSTANT(F_SET_FILE_RW_HINT), CONSTANT(F_SETOWN), CONSTANT(F_GETOWN),
    CONSTANT(F_SETOWN_EX), CONSTANT(F_GETOWN_EX), CONSTANT(F_SETSIG), CONSTANT(F_GETSIG), CONSTANT(F_NOTIFY),
    CONSTANT(FD_CLOEXEC), CONSTANT(CLOSE_RANGE_UNSHARE), CONSTANT(CLOSE_RANGE_CLOEXEC),
    CONSTANT(LOCK_SH), CONSTANT(LOCK_EX), CONSTANT(LOCK_NB), CONSTANT(LOCK_UN),
    CONSTANT(PROT_NONE), CONSTANT(PROT_READ), CONSTANT(PROT_WRITE), CONSTANT(PROT_EXEC),
    CONSTANT(MAP_SHARED), CONSTANT(MAP_PRIVATE), CONSTANT(MAP_SHARED_VALIDATE), CONSTANT(MAP_FIXED),
    CONSTANT(MAP_ANONYMOUS), CONSTANT(MAP_DENYWRITE), CONSTANT(MAP_POPULATE), CONSTANT(MAP_NORESERVE),
    CONSTANT(MAP_LOCKED), CONSTANT(MAP_NONBLOCK), CONSTANT(MAP_STACK), CONSTANT(MAP_HUGETLB),
    CONSTANT(MAP_SYNC), CONSTANT(MAP_FIXED_NOREPLACE), CONSTANT(MAP_GROWSDOWN),
    CONSTANT(MREMAP_MAYMOVE), CONSTANT(MREMAP_FIXED),
    CONSTANT(MADV_NORMAL), CONSTANT(MADV_RANDOM), CONSTANT(MADV_SEQUENTIAL), CONSTANT(MADV_WILLNEED),
    CONSTANT(MADV_DONTNEED), CONSTANT(MADV_FREE), CONSTANT(MADV_REMOVE), CONSTANT(MADV_HUGEPAGE),
    CONSTANT(MADV_NOHUGEPAGE), CONSTANT(MADV_COLD), CONSTANT(MADV_PAGEOUT), CONSTANT(MADV_DONTFORK),
    CONSTANT(MADV_POPULATE_READ), CONSTANT(MADV_POPULATE_WRITE),
    CONSTANT(MS_ASYNC), CONSTANT(MS_SYNC), CONSTANT(MS_INVALIDATE),
    CONSTANT(POSIX_FADV_NORMAL), CONSTANT(POSIX_FADV_RANDOM), CONSTANT(POSIX_FADV_SEQUENTIAL),
    CONSTANT(POSIX_FADV_WILLNEED), CONSTANT(POSIX_FADV_DONTNEED), CONSTANT(POSIX_FADV_NOREUSE),
    CONSTANT(FALLOC_FL_KEEP_SIZE), CONSTANT(FALLOC_FL_PUNCH_HOLE), CONSTANT(FALLOC_FL_ZERO_RANGE),
    CONSTANT(FALLOC_FL_COLLAPSE_RANGE), CONSTANT(FALLOC_FL_INSERT_RANGE),
    CONSTANT(RENAME_NOREPLACE), CONSTANT(RENAME_EXCHANGE), CONSTANT(RENAME_WHITEOUT),
    CONSTANT(RWF_HIPRI), CONSTANT(RWF_DSYNC), CONSTANT(RWF_SYNC), CONSTANT(RWF_NOWAIT), CONSTANT(RWF_APPEND),
    CONSTANT(SYNC_FILE_RANGE_WAIT_BEFORE), CONSTANT(SYNC_FILE_RANGE_WRITE),
    CONSTANT(SYNC_FILE_RANGE_WAIT_AFTER), CONSTANT(SPLICE_F_MOVE), CONSTANT(SPLICE_F_NONBLOCK),
    CONSTANT(SPLICE_F_MORE), CONSTANT(MFD_CLOEXEC), CONSTANT(MFD_ALLOW_SEALING), CONSTANT(MFD_HUGETLB),
    CONSTANT(XATTR_CREATE), CONSTANT(XATTR_REPLACE), CONSTANT(S_IFREG), CONSTANT(S_IFDIR),
    CONSTANT(S_IFIFO), CONSTANT(S_IFCHR), CONSTANT(S_IFBLK), CONSTANT(S_IFSOCK),
    CONSTANT(TCGETS), CONSTANT(FIONREAD), CONSTANT(FIONBIO), CONSTANT(FIOCLEX), CONSTANT(FIONCLEX),
    CONSTANT(TIOCGWINSZ), CONSTANT(FICLONE), CONSTANT(FICLONERANGE), CONSTANT(FS_IOC_FIEMAP),
    CONSTANT(FS_IOC_GETFLAGS), CONSTANT(FS_IOC_SETFLAGS), CONSTANT(BLKGETSIZE64), CONSTANT(BLKSSZGET),
    /* clang-format on */
};

bool hr__strace_constant(struct hr_strace_text t, uint32_t *ret)
{
	struct hr_strace_text rest;
	int64_t v;
	size_t n = 0;

	if (hr__strace_number(t, &v, &rest)) {
		*ret = (uint32_t)v;
		return true;
	}
	while (n < t.n && (isalnum((unsigned char)t.p[n]) || t.p[n] == '_'))
		n++;
	for (size_t i = 0; i < sizeof(constants) / sizeof(constants[0]); i++)
		if (strlen(constants[i].name) == n && memcmp(constants[i].name, t.p, n) == 0) {
			*ret = constants[i].value;
			return true;
		}
	return false;
}

uint32_t hr__strace_flags(struct hr_strace_text t)
{
	uint32_t flags = 0;

	while (t.n) {
		const char *bar = memchr(t.p, '|', t.n);
		size_t n = bar ? (size_t)(bar - t.p) : t.n;
		uint32_t one = 0;

		(void)hr__strace_constant((struct hr_strace_text){t.p, n}, &one);
		flags |= one;
		t.p += n + (bar != NULL);
		t.n -= n + (bar != NULL);
	}
	return flags;
}

struct hr_strace_text hr__strace_member(struct hr_strace_text t, const char *name)
{
	size_t n = strlen(name);

	for (size_t i = 0; i + n + 1 < t.n; i++) {
		struct hr_strace_text v = {t.p + i + n + 1, 0};

		if (t.p[i] == '"') { /* not in a string */
			i = hr__strace_string_end(t, i) - 1;
			continue;
		}
		if (memcmp(t.p + i, name, n) != 0 || t.p[i + n] != '=' ||
		    (i > 0 && (isalnum((unsigned char)t.p[i - 1]) || t.p[i - 1] == '_')))
			continue;
		while (v.p + v.n < t.p + t.n && !strchr(",})] ", v.p[v.n]))
			v.n++;
		return v;
	}
	return (struct hr_strace_text){0};
}

/* ---- strings --------------------------------------------------------------------------------- */

/* Reads the escape after a backslash at *i, and moves *i after it. */
static char escape_read(const char *p, size_t n, size_t *i)
{
	static const char from[] = "ntvfr", to[] = "\n\t\v\f\r";
	const char *named;
	unsigned v = 0, digits = 0;
	char c;

	if (*i >= n)
		return '\\';
	c = p[(*i)++];
	named = strchr(from, c);
	if (c && named)
		return to[named - from];
	if (c == 'x') {
		for (; digits < 2 && *i < n && digit_value(p[*i], 16) >= 0; digits++)
			v = v * 16 + (unsigned)digit_value(p[(*i)++], 16);
		return (char)v;
	}
	if (digit_value(c, 8) < 0)
		return c;
	for (v = (unsigned)digit_value(c, 8); digits < 2 && *i < n && digit_value(p[*i], 8) >= 0;
	     digits++)
		v = v * 8 + (unsigned)digit_value(p[(*i)++], 8);
	return (char)v;
}

long hr__strace_unescape(struct hr_strace_text t, char *to, size_t room)
{
	size_t used = 0;

	for (size_t i = 0; i < t.n;) {
		char c = t.p[i++];

		if (c == '\\')
			c = escape_read(t.p, t.n, &i);
		if (used >= room)
			return -1;
		to[used++] = c;
	}
	return (long)used;
}

long hr__strace_string(struct hr_strace_text t, char *to, size_t room)
{
	size_t end = hr__strace_string_end(t, 0);

	if (t.n < 2 || *t.p != '"' || end > t.n)
		return -1;
	return hr__strace_unescape((struct hr_strace_text){t.p + 1, end - 2}, to, room);
}

/* ---- descriptors ----------------------------------------------------------------------------- */

static bool text_cut_end(struct hr_strace_text *t, const char *end)
{
	size_t n = strlen(end);

	if (t->n <= n || memcmp(t->p + t->n - n, end, n) != 0)
		return false;
	t->n -= n;
	return true;
}

/* Skips the comment with a name that -X verbose writes after a number. */
static void comment_skip(struct hr_strace_text *t)
{
	const char *end =
	    t->n > 4 && memcmp(t->p, " /* ", 4) == 0 ? memmem(t->p, t->n, " */", 3) : NULL;

	if (end) {
		t->n -= (size_t)(end + 3 - t->p);
		t->p = end + 3;
	}
}

bool hr__strace_absolute(struct hr_strace_text t)
{
	size_t i = 2;

	return t.n >= 3 && (t.p[1] == '/' || (t.p[1] == '\\' && escape_read(t.p, t.n, &i) == '/'));
}

bool hr__strace_fd(struct hr_strace_text t, struct hr_strace_fd *ret)
{
	static const char cwd[] = "AT_FDCWD";
	static const char gone[] = " (deleted)";
	static const char gone_x[] = "\\x20\\x28\\x64\\x65\\x6c\\x65\\x74\\x65\\x64\\x29";
	struct hr_strace_text rest;
	int64_t fd = AT_FDCWD;
	size_t n = 0;

	*ret = (struct hr_strace_fd){.fd = AT_FDCWD};
	if (t.n >= strlen(cwd) && memcmp(t.p, cwd, strlen(cwd)) == 0)
		rest = (struct hr_strace_text){t.p + strlen(cwd), t.n - strlen(cwd)};
	else if (!hr__strace_number(t, &fd, &rest) || fd < INT32_MIN || fd > INT32_MAX)
		return false;
	comment_skip(&rest);
	ret->fd = (int32_t)fd;
	ret->shown = rest.n && *rest.p == '<';
	if (!hr__strace_absolute(rest))
		return true;
	/* The path ends at > or, with -yy, where the device begins. Both are escaped in a path. */
	for (n = 1; n < rest.n && rest.p[n] != '<' && rest.p[n] != '>'; n++)
		n += rest.p[n] == '\\';
	ret->path = (struct hr_strace_text){rest.p + 1, n < rest.n ? n - 1 : rest.n - 1};
	if (!text_cut_end(&ret->path, gone))
		(void)text_cut_end(&ret->path, gone_x);
	return true;
}

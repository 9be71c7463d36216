/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fdtab.c - the file of each descriptor
 *
 *      entries[fd]   one word: hr_file, and whether this session has sent its path
 *      texts[fd] path as opened, if fd < text_fds; for forked children and *at calls. Readers
 *                    check that the text's hash is the entry's id, so no lock is needed.
 *
 * For a descriptor beyond the table, the kernel is asked at each operation.
 */
#include "shim/core/path.h"

#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include "common/pathid.h"
#include "shim/core/linkname.h"
#include "shim/core/sys.h"

#ifndef STATX_MNT_ID
#define STATX_MNT_ID 0x1000u
#endif

#define FDS_MAX	   (UINT32_C(1) << 26)
#define FDS_MIN	   UINT32_C(1024)
#define TEXT_FDS   UINT32_C(65536)
#define DATA_SHARE 16 /* the tables may take this part of a limit of data (ulimit -d) */
#define TEXT_WORDS 32 /* the first word contains the length */
#define TEXT_BYTES ((TEXT_WORDS - 1) * sizeof(uint64_t))

struct hr__fdtab hr__fdtab;
static uint64_t (*texts)[TEXT_WORDS];
static uint32_t text_fds;
static uint32_t high; /* the highest index that was ever set, up to which loops run */

/* The kernel counts a reservation as data, although it has no memory yet. */
bool hr__fdtab_init(void)
{
	struct rlimit limit = {0};
	uint64_t fds = FDS_MAX, data = UINT64_MAX;

	if (HR_SYS4(prlimit64, 0, RLIMIT_NOFILE, NULL, &limit) == 0 && limit.rlim_max < fds)
		fds = limit.rlim_max < FDS_MIN ? FDS_MIN : limit.rlim_max;
	if (HR_SYS4(prlimit64, 0, RLIMIT_DATA, NULL, &limit) == 0)
		data = limit.rlim_cur / DATA_SHARE;
	for (; fds >= FDS_MIN; fds /= 2) {
		uint32_t n_texts = fds < TEXT_FDS ? (uint32_t)fds : TEXT_FDS;
		size_t bytes = fds * sizeof(hr_file) + n_texts * sizeof(texts[0]);
		void *memory = bytes <= data || fds / 2 < FDS_MIN ? hr_sys_reserve(bytes) : NULL;

		if (memory == NULL)
			continue;
		/* With huge pages, the first access would allocate two megabytes. */
		HR_SYS3(madvise, memory, bytes, MADV_NOHUGEPAGE);
		texts = memory;
		text_fds = n_texts;
		hr__fdtab.entries = (hr_file *)(void *)(texts + n_texts);
		__atomic_store_n(&hr__fdtab.limit, (uint32_t)fds, __ATOMIC_RELEASE);
		return true;
	}
	return false;
}

static void raise_high(int fd)
{
	uint32_t seen = __atomic_load_n(&high, __ATOMIC_RELAXED);

	while ((uint32_t)fd > seen &&
	       !__atomic_compare_exchange_n(&high, &seen, (uint32_t)fd, true, __ATOMIC_RELAXED,
					    __ATOMIC_RELAXED))
		;
}

static void entry_store(int fd, hr_file file)
{
	raise_high(fd);
	/* Release: a thread that loads the entry also sees the text. */
	__atomic_store_n(&hr__fdtab.entries[fd], file, __ATOMIC_RELEASE);
}

static bool in_table(int fd)
{
	return (uint32_t)fd < __atomic_load_n(&hr__fdtab.limit, __ATOMIC_ACQUIRE);
}

/* Marks the path of fd as sent, unless another thread has changed the entry `was`. */
static void announced_store(int fd, hr_file was, hr_file file)
{
	if (in_table(fd) && !hr_in_vfork_child())
		__atomic_compare_exchange_n(&hr__fdtab.entries[fd], &was, file | HR__FD_ANNOUNCED,
					    false, __ATOMIC_RELAXED, __ATOMIC_RELAXED);
}

void hr__fdtab_forget_announced(void)
{
	uint32_t end = __atomic_load_n(&high, __ATOMIC_RELAXED);

	for (uint32_t fd = 0; fd <= end && in_table((int)fd); fd++) {
		hr_file file = __atomic_load_n(&hr__fdtab.entries[fd], __ATOMIC_RELAXED);

		if (hr_file_tracked(file) && (file & HR__FD_ANNOUNCED) != 0)
			__atomic_store_n(&hr__fdtab.entries[fd], file & ~HR__FD_ANNOUNCED,
					 __ATOMIC_RELAXED);
	}
}

/* ---- text -------------------------------------------------------------------------------------- */

static void text_store(int fd, const char *text, size_t bytes)
{
	if ((uint32_t)fd >= text_fds)
		return;
	if (bytes > TEXT_BYTES)
		bytes = 0;
	__atomic_store_n(&texts[fd][0], bytes, __ATOMIC_RELAXED);
	for (size_t at = 0; at < bytes; at += sizeof(uint64_t)) {
		uint64_t word = 0;

		memcpy(&word, text + at, bytes - at < sizeof(word) ? bytes - at : sizeof(word));
		__atomic_store_n(&texts[fd][1 + at / sizeof(word)], word, __ATOMIC_RELAXED);
	}
}

/*
 * Copies the stored path of fd to buf (TEXT_BYTES) if it is the path of `file`. Returns the length,
 * or 0.
 */
static size_t text_load(int fd, hr_file file, char *buf)
{
	size_t bytes;

	if ((uint32_t)fd >= text_fds)
		return 0;
	bytes = __atomic_load_n(&texts[fd][0], __ATOMIC_RELAXED);
	if (bytes == 0 || bytes > TEXT_BYTES)
		return 0;
	for (size_t at = 0; at < bytes; at += sizeof(uint64_t)) {
		uint64_t word =
		    __atomic_load_n(&texts[fd][1 + at / sizeof(word)], __ATOMIC_RELAXED);

		memcpy(buf + at, &word, bytes - at < sizeof(word) ? bytes - at : sizeof(word));
	}
	return hr_path_id(buf, bytes) == HR_FILE_ID(file) ? bytes : 0;
}

/* Reads the current name of fd's file from the kernel. st may be NULL. */
static bool text_from_kernel(int fd, const struct hr__stat *st, struct hr__text *text)
{
	char link[32];
	long n;

	if (hr_shim_image.quiet)
		return false;
	hr__linkname_proc(link, fd);
	n = hr__text_grow(text) ? HR_SYS4(readlinkat, AT_FDCWD, link, text->bytes, PATH_MAX) : -1;
	if (n < 0) { /* the path is too long, /proc is not there, or all buffers are in use */
		text->length = sizeof(HR__UNKNOWN_FOLDER) - 1;
		memcpy(text->bytes, HR__UNKNOWN_FOLDER, text->length);
		return true;
	}
	text->length = hr__linkname_clean(text->bytes, (size_t)n, st != NULL && st->nlink == 0);
	return text->length > 0;
}

bool hr__fd_path(int fd, struct hr__text *text)
{
	hr_file file = in_table(fd) ? hr__fd_peek(fd) : HR_FILE_UNKNOWN;

	if (hr_file_tracked(file) && !hr_in_vfork_child()) {
		text->length = text_load(fd, file, text->bytes);
		if (text->length > 0)
			return true;
	}
	return text_from_kernel(fd, NULL, text) &&
	       (text->bytes[0] == '/' || text->bytes[0] == HR__UNKNOWN_FOLDER[0]);
}

/* A filter of containers may refuse statx, which is younger than the filter. */
static long stat_old(int fd, struct statx *ret)
{
	struct stat st = {0};
	long r = HR_SYS2(fstat, fd, &st);

	ret->stx_mode = (uint16_t)st.st_mode;
	ret->stx_nlink = (uint32_t)st.st_nlink;
	ret->stx_dev_major = major(st.st_dev);
	ret->stx_dev_minor = minor(st.st_dev);
	return r;
}

bool hr__stat_fd(int fd, struct hr__stat *ret)
{
	struct statx st = {0};
	uint8_t outer;
	long r;

	*ret = (struct hr__stat){.nlink = 1, .device = HR_OFFSET_NONE, .mount = -1};
	if (hr_shim_image.quiet)
		return false;
	outer = hr__bare_enter(HR_BARE_OWN);
	r = HR_SYS5(statx, fd, "", AT_EMPTY_PATH | AT_STATX_DONT_SYNC,
		    STATX_TYPE | STATX_NLINK | STATX_MNT_ID, &st);
	if (r == -ENOSYS || r == -EPERM)
		r = stat_old(fd, &st);
	hr__bare_leave(outer);
	if (r != 0)
		return false;
	/* An anonymous inode has no type. Mode 1 distinguishes it from an unknown mode. */
	ret->mode = (st.stx_mode & S_IFMT) != 0 ? st.stx_mode : 1;
	ret->nlink = st.stx_nlink;
	ret->device = (int64_t)((uint64_t)st.stx_dev_major << 32 | st.stx_dev_minor);
	if ((st.stx_mask & STATX_MNT_ID) != 0)
		ret->mount = (int64_t)st.stx_mnt_id;
	return true;
}

int64_t hr_fd_position(int fd)
{
	uint8_t outer;
	long r;

	if (hr_shim_image.quiet)
		return -1;
	outer = hr__bare_enter(HR_BARE_OWN);
	r = HR_SYS3(lseek, fd, 0, SEEK_CUR);
	hr__bare_leave(outer);
	return r;
}

bool hr__stat_ignored(const struct hr__stat *st)
{
	return st->mode != 0 && !S_ISREG(st->mode) && !S_ISDIR(st->mode) && !S_ISBLK(st->mode) &&
	       !S_ISLNK(st->mode);
}

/* ---- entries ----------------------------------------------------------------------------------- */

/*
 * Call it before the entries of fd [first, last] change. Whether this is a vfork child with its own
 * descriptors: the table has those of its parent. Wrappers do not look up ignored descriptors, so
 * these become unknown, and the parent looks them up again.
 */
static bool of_parent(uint32_t first, uint32_t last)
{
	uint32_t end;

	if (hr_self.quiet_vfork)
		return true;
	if (!hr_in_vfork_child())
		return false;
	hr_self.child_fds = true;
	end = __atomic_load_n(&high, __ATOMIC_RELAXED);
	for (uint32_t fd = first; fd <= last && fd <= end && in_table((int)fd); fd++) {
		hr_file ignored = HR_FILE_IGNORED;

		__atomic_compare_exchange_n(&hr__fdtab.entries[fd], &ignored, HR_FILE_UNKNOWN,
					    false, __ATOMIC_RELAXED, __ATOMIC_RELAXED);
	}
	return true;
}

static bool split(void)
{
	return __atomic_load_n(&hr__fdtab.split, __ATOMIC_RELAXED);
}

void hr__fd_open(int fd, hr_file file, const char *text, size_t bytes, bool announced)
{
	if (!in_table(fd) || split() || of_parent((uint32_t)fd, (uint32_t)fd))
		return;
	if (hr_file_tracked(file))
		text_store(fd, text, bytes);
	entry_store(fd, announced ? file | HR__FD_ANNOUNCED : file);
}

hr_file hr__fd_resolve(int fd)
{
	hr_file file = HR_FILE_IGNORED, unknown = HR_FILE_UNKNOWN;
	struct hr__stat st;
	struct hr__text text;
	bool stored = in_table(fd) && !split() && !hr_in_vfork_child();
	uint32_t kind; /* unused: only opens that the shim intercepts are counted */

	if (fd < 0 || hr_shim_image.quiet || !hr__stat_fd(fd, &st))
		return HR_FILE_IGNORED; /* not stored, because a file may get this number later */
	hr__text_init(&text);
	if (!hr__stat_ignored(&st) && text_from_kernel(fd, &st, &text)) {
		file = hr__path_classify(text.bytes, text.length, &kind);
		if (hr_file_tracked(file)) {
			file |= S_ISDIR(st.mode) ? HR_FILE_DIR : 0;
			if (stored)
				text_store(fd, text.bytes, text.length);
		}
	}
	hr__text_done(&text);
	if (!stored)
		return file;
	raise_high(fd);
	if (!__atomic_compare_exchange_n(&hr__fdtab.entries[fd], &unknown, file, false,
					 __ATOMIC_RELEASE, __ATOMIC_RELAXED))
		return unknown;
	return file;
}

void hr__fdtab_resolve_open(void)
{
	_Alignas(struct dirent64) char names[2048] = {0};
	long dir = HR_SYS4(openat, AT_FDCWD, "/proc/thread-self/fd",
			   O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0);
	long bytes;

	while (dir >= 0 && (bytes = HR_SYS3(getdents64, dir, names, sizeof(names))) > 0) {
		const struct dirent64 *d;

		for (long at = 0; at < bytes; at += d->d_reclen) {
			int fd = 0;

			d = (const void *)(names + at);
			for (const char *c = d->d_name; *c >= '0' && *c <= '9'; c++)
				fd = fd * 10 + (*c - '0');
			if (d->d_name[0] != '.' && fd != dir && in_table(fd) &&
			    hr__fd_peek(fd) == HR_FILE_UNKNOWN)
				hr__fd_resolve(fd);
		}
	}
	if (dir >= 0)
		HR_SYS1(close, dir);
}

static size_t text_of_dup(hr_file file, char *buf)
{
	uint32_t end = __atomic_load_n(&high, __ATOMIC_RELAXED);

	for (uint32_t fd = 0; fd <= end && fd < 256; fd++) {
		hr_file other = __atomic_load_n(&hr__fdtab.entries[fd], __ATOMIC_RELAXED);
		size_t n;

		if (HR_FILE_ID(other) == HR_FILE_ID(file) &&
		    (n = text_load((int)fd, file, buf)) > 0)
			return n;
	}
	return 0;
}

/*
 * Sends the path of a descriptor if this session has not sent it. Reasons: the descriptor was
 * inherited by fork or opened without a session, or the record of the path was dropped. If the
 * table lacks the path, sends the kernel's name, which has another id if the file was opened
 * through a link or renamed later.
 */
hr_file hr__fd_announce(int fd, hr_file file)
{
	struct hr__text text;
	struct hr__stat st;
	hr_file was = file;
	bool sent = hr__path_sent(file, false, &file);

	if (sent && fd >= 0)
		announced_store(fd, was, file);
	if (sent || fd < 0)
		return file;
	hr__text_init(&text);
	hr__stat_fd(fd, &st);
	text.length = text_load(fd, file, text.bytes);
	if (text.length == 0)
		text.length = text_of_dup(file, text.bytes);
	if (text.length == 0 && text_from_kernel(fd, &st, &text)) {
		hr_file now = hr_path_id(text.bytes, text.length) | (file & HR_FILE_RUNTIME);

		if (HR_FILE_ID(now) != HR_FILE_ID(file))
			hr__fd_open(fd, now, text.bytes, text.length, false);
		was = file = now;
	}
	if (text.length > 0) {
		file = hr__path_announce(file, text.bytes, text.length, &st, &sent);
		if (sent)
			announced_store(fd, was, file);
	}
	hr__text_done(&text);
	return file;
}

/* ---- core.h ------------------------------------------------------------------------------------ */

void hr_fd_set(int fd, hr_file file)
{
	if (!in_table(fd) || split() || of_parent((uint32_t)fd, (uint32_t)fd))
		return;
	entry_store(fd, file & ~HR__FD_ANNOUNCED);
}

hr_file hr_fd_get(int fd)
{
	hr_file file = hr__fd_peek(fd);

	if (file == HR_FILE_UNKNOWN)
		return hr__fd_resolve(fd);
	return hr_file_tracked(file) ? file & ~HR__FD_ANNOUNCED : file;
}

void hr_fd_clear(int fd)
{
	if (!in_table(fd) || of_parent((uint32_t)fd, (uint32_t)fd))
		return;
	hr__session_fd_taken((unsigned)fd, (unsigned)fd);
	if (hr__fd_peek(fd) == HR_FILE_UNKNOWN)
		return;
	__atomic_store_n(&hr__fdtab.entries[fd], HR_FILE_UNKNOWN, __ATOMIC_RELEASE);
}

void hr_fd_clear_range(unsigned first, unsigned last)
{
	uint32_t end = __atomic_load_n(&high, __ATOMIC_RELAXED);

	if (first > last || of_parent(first, last))
		return;
	hr__session_fd_taken(first, last);
	for (uint32_t fd = first; fd <= last && fd <= end && in_table((int)fd); fd++)
		hr_fd_clear((int)fd);
}

void hr_fds_split(void)
{
	if (!hr_shim_image.on || hr_in_vfork_child())
		return;
	__atomic_store_n(&hr__fdtab.split, true, __ATOMIC_SEQ_CST);
	for (uint32_t fd = 0; fd <= __atomic_load_n(&high, __ATOMIC_SEQ_CST) && in_table((int)fd);
	     fd++)
		__atomic_store_n(&hr__fdtab.entries[fd], HR_FILE_UNKNOWN, __ATOMIC_RELEASE);
}

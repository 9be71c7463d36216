/* SPDX-License-Identifier: Apache-2.0 */
/*
 * path.c - the absolute path of a file, from which its id is made, and the set of sent paths
 *
 * A path loses `//`, `/./` and a trailing slash, and keeps `..` and links. Short paths are built in
 * a buffer on the stack, which may be the small stack of a signal handler. Long paths use a pool.
 */
#include "shim/core/path.h"

#include <limits.h>
#include <string.h>
#include <sys/stat.h>

#include "common/pathid.h"
#include "shim/core/clock.h"
#include "shim/core/ring.h"
#include "shim/core/sys.h"

#define POOL_SLOTS 16
#define POOL_BYTES 8448 /* for a working directory, a slash and a path */

static char pool[POOL_SLOTS][POOL_BYTES];

void hr__text_init(struct hr__text *text)
{
	text->bytes = text->small;
	text->length = 0;
	text->slot = -1;
}

size_t hr__text_cap(const struct hr__text *text)
{
	return text->slot < 0 ? sizeof(text->small) : POOL_BYTES;
}

bool hr__text_grow(struct hr__text *text)
{
	uint32_t used = __atomic_load_n(&hr_wiped.scratch, __ATOMIC_RELAXED);
	int slot;

	if (text->slot >= 0)
		return true;
	do {
		if (used == (1u << POOL_SLOTS) - 1)
			return false;
		slot = __builtin_ctz(~used);
	} while (!__atomic_compare_exchange_n(&hr_wiped.scratch, &used, used | 1u << slot, false,
					      __ATOMIC_ACQUIRE, __ATOMIC_RELAXED));
	memcpy(pool[slot], text->bytes, text->length);
	text->bytes = pool[slot];
	text->slot = slot;
	return true;
}

void hr__text_done(struct hr__text *text)
{
	if (text->slot >= 0)
		__atomic_fetch_and(&hr_wiped.scratch, ~(1u << text->slot), __ATOMIC_RELEASE);
	text->slot = -1;
}

/* ---- the working directory --------------------------------------------------------------------- */

/*
 * hr_wiped.cwd_seq guards the cache. Bit 0: a thread is writing. Bit 1: the cache is valid. Higher
 * bits: a generation, which every chdir increments. Words are atomic. A copy is valid only if the
 * sequence is the same before and after it.
 */
#define CWD_WRITING    1u
#define CWD_VALID      2u
#define CWD_GENERATION 4u
#define CWD_WORDS      (PATH_MAX / sizeof(uint64_t))

static uint64_t cwd_words[CWD_WORDS];
static uint32_t cwd_length;

static bool cwd_split;

void hr_cwd_split(void)
{
	__atomic_store_n(&cwd_split, true, __ATOMIC_RELAXED);
}

void hr_cwd_changed(void)
{
	uint32_t seq = __atomic_load_n(&hr_wiped.cwd_seq, __ATOMIC_RELAXED);

	if (hr_in_vfork_child())
		return; /* a vfork child does not use the cache, which belongs to the parent */
	while (!__atomic_compare_exchange_n(&hr_wiped.cwd_seq, &seq,
					    (seq + CWD_GENERATION) & ~CWD_VALID, false,
					    __ATOMIC_RELEASE, __ATOMIC_RELAXED))
		;
}

static size_t cwd_from_kernel(char *buf, size_t cap)
{
	long n = hr_shim_image.quiet ? -1 : HR_SYS2(getcwd, buf, cap);

	return n > 1 && buf[0] == '/' ? (size_t)n - 1 : 0;
}

static size_t cwd_cached(char *buf, size_t cap)
{
	uint32_t seq = __atomic_load_n(&hr_wiped.cwd_seq, __ATOMIC_ACQUIRE);
	size_t n = __atomic_load_n(&cwd_length, __ATOMIC_ACQUIRE);

	if ((seq & (CWD_VALID | CWD_WRITING)) != CWD_VALID || n > cap)
		return 0;
	for (size_t at = 0; at < n; at += sizeof(uint64_t)) {
		uint64_t word = __atomic_load_n(&cwd_words[at / sizeof(word)], __ATOMIC_ACQUIRE);

		memcpy(buf + at, &word, n - at < sizeof(word) ? n - at : sizeof(word));
	}
	return __atomic_load_n(&hr_wiped.cwd_seq, __ATOMIC_RELAXED) == seq ? n : 0;
}

static size_t cwd_refresh(char *buf, size_t cap)
{
	uint32_t seq = __atomic_load_n(&hr_wiped.cwd_seq, __ATOMIC_RELAXED);
	bool writer =
	    (seq & CWD_WRITING) == 0 &&
	    __atomic_compare_exchange_n(&hr_wiped.cwd_seq, &seq, (seq & ~CWD_VALID) | CWD_WRITING,
					false, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED);
	size_t n = cwd_from_kernel(buf, cap);

	if (!writer)
		return n;
	seq = (seq & ~CWD_VALID) | CWD_WRITING;
	for (size_t at = 0; at < n; at += sizeof(uint64_t)) {
		uint64_t word = 0;

		memcpy(&word, buf + at, n - at < sizeof(word) ? n - at : sizeof(word));
		__atomic_store_n(&cwd_words[at / sizeof(word)], word, __ATOMIC_RELEASE);
	}
	__atomic_store_n(&cwd_length, (uint32_t)n, __ATOMIC_RELEASE);
	if (n == 0 ||
	    !__atomic_compare_exchange_n(&hr_wiped.cwd_seq, &seq, (seq & ~CWD_WRITING) | CWD_VALID,
					 false, __ATOMIC_RELEASE, __ATOMIC_RELAXED))
		__atomic_fetch_and(&hr_wiped.cwd_seq, ~CWD_WRITING, __ATOMIC_RELEASE);
	return n;
}

static bool base_cwd(struct hr__text *text)
{
	size_t n = 0;

	if (!hr_in_vfork_child() && !__atomic_load_n(&cwd_split, __ATOMIC_RELAXED)) {
		n = cwd_cached(text->bytes, hr__text_cap(text));
		if (n == 0 && hr__text_grow(text))
			n = cwd_cached(text->bytes, hr__text_cap(text));
		if (n == 0)
			n = cwd_refresh(text->bytes, hr__text_cap(text));
	} else if (hr__text_grow(text)) {
		n = cwd_from_kernel(text->bytes, hr__text_cap(text));
	}
	text->length = n;
	return n > 0;
}

void hr__path_know_cwd(void)
{
	struct hr__text text;

	hr__text_init(&text);
	base_cwd(&text);
	hr__text_done(&text);
}

/* Whether no component is empty or begins with a dot, and no slash is at the end (as usual). */
static bool clean(const char *path, size_t bytes)
{
	char before = '/';

	for (size_t i = path[0] == '/'; i < bytes; i++) {
		if (before == '/' && (path[i] == '/' || path[i] == '.'))
			return false;
		before = path[i];
	}
	return before != '/';
}

/* Appends the components of `path` to the `base` bytes in buf. Returns 0 if they do not fit. */
size_t hr__path_append(char *buf, size_t base, size_t cap, const char *path, size_t bytes)
{
	const char *end = path + bytes;
	size_t n = base;

	while (n > 0 && buf[n - 1] == '/')
		n--;
	if (hr_likely(n + bytes + 1 <= cap && clean(path, bytes))) {
		if (path[0] != '/')
			buf[n++] = '/';
		memcpy(buf + n, path, bytes);
		return n + bytes;
	}
	while (path < end) {
		const char *stop = memchr(path, '/', (size_t)(end - path));
		size_t len = (size_t)((stop != NULL ? stop : end) - path);

		if (len > 0 && !(len == 1 && path[0] == '.')) {
			if (n + 1 + len > cap)
				return 0;
			buf[n++] = '/';
			memcpy(buf + n, path, len);
			n += len;
		}
		path += len + (stop != NULL);
	}
	if (n == 0 && cap > 0)
		buf[n++] = '/';
	return n;
}

/*
 * Writes the name of a path whose folder is unknown, or for which there is no room: as much of its
 * end as fits.
 */
static void without_folder(struct hr__text *text, const char *path, size_t bytes)
{
	size_t room = hr__text_cap(text) - sizeof(HR__UNKNOWN_FOLDER);

	if (bytes > room) {
		path += bytes - room;
		bytes = room;
	}
	memcpy(text->bytes, HR__UNKNOWN_FOLDER "/", sizeof(HR__UNKNOWN_FOLDER));
	memcpy(text->bytes + sizeof(HR__UNKNOWN_FOLDER), path, bytes);
	text->length = sizeof(HR__UNKNOWN_FOLDER) + bytes;
}

bool hr__path_absolute(struct hr__text *text, int dirfd, const char *path)
{
	size_t bytes = strnlen(path, PATH_MAX), n = 0;
	bool based;

	if (bytes == 0)
		return false;
	based = path[0] == '/' || (dirfd == AT_FDCWD ? base_cwd(text) : hr__fd_path(dirfd, text));
	if (based)
		n = hr__path_append(text->bytes, text->length, hr__text_cap(text), path, bytes);
	if (based && n == 0 && hr__text_grow(text))
		n = hr__path_append(text->bytes, text->length, hr__text_cap(text), path, bytes);
	if (n > 0)
		text->length = n;
	else
		without_folder(text, path, bytes);
	return true;
}

/* Tests by rt_sigprocmask, which reads its set before it refuses the invalid operation -1. */
bool hr_readable(const void *p)
{
	uintptr_t word = (uintptr_t)p & ~(uintptr_t)7;

	if (word == 0 ||
	    hr_shim_image.quiet) /* the kernel accepts NULL as a set without reading it */
		return word != 0;
	return HR_SYS4(rt_sigprocmask, -1, word, NULL, 8) != -EFAULT;
}

/* Tests one word per page, up to the NUL. */
bool hr__path_readable(const char *path)
{
	size_t left = PATH_MAX;

	if (hr_shim_image.quiet)
		return false;
	while (left > 0) {
		size_t page = 4096 - ((uintptr_t)path & 4095);
		size_t n = page < left ? page : left;

		if (!hr_readable(path))
			return false;
		if (memchr(path, '\0', n) != NULL)
			return true;
		path += n;
		left -= n;
	}
	return true;
}

/* ---- identity and announcement ----------------------------------------------------------------- */

/* Returns the slot of a path. If another path takes the slot, this path is sent again. */
static uint64_t *sent_slot(hr_file file)
{
	return &hr_wiped.sent[(file >> 3) % HR__SENT_SLOTS];
}

/* Not inlined, so that its buffer is on the stack only when needed. */
static __attribute__((noinline)) enum hr_verdict verdict_resolved(const char *path, size_t bytes,
								  uint32_t *ret_kind)
{
	enum hr_verdict verdict;
	struct hr__text text;

	hr__text_init(&text);
	if (bytes <= hr__text_cap(&text) || hr__text_grow(&text)) {
		memcpy(text.bytes, path, bytes);
		path = text.bytes;
		bytes = hr_path_resolve(text.bytes, bytes);
	}
	verdict = hr_filter_verdict(&hr_filter, path, bytes, ret_kind);
	hr__text_done(&text);
	return verdict;
}

/* Patterns apply to real folders, so a path with `..` is resolved before the comparison. */
static enum hr_verdict verdict_of(const char *path, size_t bytes, uint32_t *ret_kind)
{
	if (hr_unlikely(hr_path_has_parent(path, bytes)))
		return verdict_resolved(path, bytes, ret_kind);
	return hr_filter_verdict(&hr_filter, path, bytes, ret_kind);
}

hr_file hr__path_classify(const char *path, size_t bytes, uint32_t *ret_kind)
{
	hr_file file = hr_path_id(path, bytes);

	/* Prefetches the slot, which is used next, while the filter runs. */
	__builtin_prefetch(sent_slot(file), 1);
	*ret_kind = HR_EXCLUDED_KINDS;
	if (hr_unlikely(path[0] == HR__UNKNOWN_FOLDER[0]))
		return file;
	switch (verdict_of(path, bytes, ret_kind)) {
	case HR__TRACED:
		return file;
	case HR__TRACED_RUNTIME:
		return file | HR_FILE_RUNTIME;
	default:
		return HR_FILE_IGNORED;
	}
}

#define SENT_SOON 16u /* after this number of paths, the whole set gets memory */

/* A program that opens some files often opens many. One system call replaces many page faults. */
static void sent_populate(void)
{
	if (__atomic_add_fetch(&hr_wiped.announced, 1, __ATOMIC_RELAXED) == SENT_SOON &&
	    !hr_shim_image.quiet)
		HR_SYS3(madvise, hr_wiped.sent, sizeof(hr_wiped.sent), MADV_POPULATE_WRITE);
}

bool hr_sent(uint64_t id)
{
	return HR_FILE_ID(__atomic_load_n(sent_slot(id), __ATOMIC_RELAXED)) == id;
}

void hr_sent_note(uint64_t id)
{
	sent_populate();
	__atomic_store_n(sent_slot(id), id, __ATOMIC_RELAXED);
}

bool hr__path_sent(hr_file file, bool typed, hr_file *ret_file)
{
	uint64_t seen = __atomic_load_n(sent_slot(file), __ATOMIC_RELAXED);

	if (HR_FILE_ID(seen) != HR_FILE_ID(file) || (typed && (seen & HR__SENT_TYPED) == 0))
		return false;
	*ret_file = file | (seen & HR_FILE_DIR);
	return true;
}

hr_file hr__path_announce(hr_file file, const char *path, size_t bytes, const struct hr__stat *st,
			  bool *ret_sent)
{
	bool typed = st != NULL && st->mode != 0;
	struct hr_record head = {.op = HR_CTL_PATH, .offset = HR_OFFSET_NONE, .ret = -1};

	if (typed && S_ISDIR(st->mode))
		file |= HR_FILE_DIR;
	*ret_sent = hr__path_sent(file, typed, &file);
	if (*ret_sent || hr__ring_any() == NULL)
		return file;
	if (bytes > HR__PATH_MAX)
		bytes = HR__PATH_MAX;
	head.start_ticks = hr_shim_ticks();
	head.file = HR_FILE_ID(file);
	head.asked = bytes;
	head.fd = (int32_t)((bytes + HR_TEXT_BYTES - 1) / HR_TEXT_BYTES);
	head.bits = hr__file_bits(file);
	if (typed) {
		head.flags = st->mode & S_IFMT;
		head.offset = st->device;
		head.ret = st->mount;
	}
	*ret_sent = hr_ring_control(&head, path, bytes);
	sent_populate();
	if (*ret_sent)
		__atomic_store_n(sent_slot(file), file | (typed ? HR__SENT_TYPED : 0),
				 __ATOMIC_RELAXED);
	return file;
}

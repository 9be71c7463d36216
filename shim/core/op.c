/* SPDX-License-Identifier: Apache-2.0 */
/*
 * op.c - begin and end of an operation
 *
 * An operation ends in this order: read the clock, write the record, clear the in-flight cell.
 * After a kill between these steps, the daemon finds the record, the cell, or both with the same
 * start.
 */
#include <errno.h>
#include <fcntl.h>
#include <string.h>

#include "shim/core/clock.h"
#include "shim/core/linkname.h"
#include "shim/core/path.h"
#include "shim/core/ring.h"
#include "shim/core/sys.h"

struct hr_ring_hdr *hr__ring_for_op(enum hr__seek seek, bool *ret_off)
{
	struct hr_ring_hdr *ring = hr_ring_current();

	if (hr_unlikely(ring == NULL))
		ring = hr_ring_find(seek);
	*ret_off = (ring != NULL || hr__ring_common() != NULL) && hr_level_off();
	return *ret_off ? NULL : ring;
}

/* Whether the fast path can be used: a ring of this session, and no reason of enum hr__slow. */
static inline bool thread_ready(const struct hr__thread *t)
{
	return t->nonce == __atomic_load_n(&hr_wiped.nonce, __ATOMIC_ACQUIRE) && t->slow.any == 0;
}

/* Slow path: writes the in-flight cell, unless two processes share the thread and its cell. */
static void cell_enter(struct hr_op *op, uint32_t bits)
{
	if (!hr__shared())
		hr__cell_enter(op, bits);
}

static void cell_leave(struct hr_op *op)
{
	if (!hr__shared() ||
	    __atomic_load_n(&op->ring->inflight.start_ticks, __ATOMIC_RELAXED) == op->start)
		hr__cell_leave(op);
}

/*
 * Stores the start of the outermost operation in flight of a thread without a ring; probes and the
 * hello read it. The address of the operation's frame shows whether a longjmp leaves it.
 */
static void bare_enter(struct hr_op *op)
{
	struct hr__thread *t = &hr_self;

	/* A child handler of pthread_atfork may make calls before fork() returns to its wrapper. */
	hr_after_fork_child();
	if (t->slow.why[HR__SLOW_BARE] == HR_BARE_CALL &&
	    hr__reentered(op, t->bare_op, t->bare_fd, t->bare_file)) {
		op->live = false;
		return;
	}
	op->outer_bare = hr__bare_enter(HR_BARE_CALL);
	if (op->outer_bare == HR_BARE_CALL)
		return;
	t->began = op->start;
	t->frame = (uintptr_t)op;
	t->bare_file = HR_FILE_ID(op->file);
	t->bare_fd = op->fd;
	t->bare_op = op->id;
}

static void bare_leave(const struct hr_op *op)
{
	hr__bare_leave(op->outer_bare);
	if (op->outer_bare != HR_BARE_CALL)
		hr_self.began = 0;
}

/* ---- begin ------------------------------------------------------------------------------------- */

static inline void op_set(struct hr_op *op, enum hr_op_id id, hr_file file, int fd, uint64_t asked,
			  int64_t offset)
{
	op->live = true;
	op->id = (uint16_t)id;
	op->fd = fd;
	op->file = file;
	op->offset = offset;
	op->asked = asked;
	op->path = NULL;
}

/* Call it when an operation begins: ends the states that keep a thread from the fast path. */
static void leave_special_states(struct hr__thread *t)
{
	if (t->slow.why[HR__SLOW_AGGREGATE] != 0)
		hr__ring_aggregate_flush();
	if (t->slow.why[HR__SLOW_VFORK] != HR__VFORK_NO)
		hr__vfork_child();
}

/* `file` lacks the bit HR__FD_ANNOUNCED. HR_FILE_UNKNOWN: the operation has no file. */
static void begin_slow(struct hr_op *op, enum hr_op_id id, hr_file file, int fd, uint64_t asked,
		       int64_t offset)
{
	bool off;

	op->ring = hr__ring_for_op(HR__SEEK_FIRST, &off);
	op->live = !off;
	if (off)
		return;
	if (hr__ring_any() != NULL) {
		leave_special_states(&hr_self);
		if (hr_file_tracked(file))
			file = hr__fd_announce(fd, file);
	}
	op_set(op, id, file, fd, asked, offset);
	op->start = hr_shim_ticks();
	if (op->ring != NULL)
		cell_enter(op, hr__file_bits(file));
	else
		bare_enter(op);
}

static __attribute__((noinline)) void begin_unknown(struct hr_op *op, enum hr_op_id id, int fd,
						    uint64_t asked, int64_t offset, hr_file file)
{
	if (file == HR_FILE_UNKNOWN || (hr_in_vfork_child() && hr_self.child_fds))
		file = hr__fd_resolve(fd);
	if (hr_file_tracked(file))
		begin_slow(op, id, file & ~HR__FD_ANNOUNCED, fd, asked, offset);
	else
		op->live = false;
}

void hr__begin_fd(struct hr_op *op, enum hr_op_id id, int fd, uint64_t asked, int64_t offset,
		  hr_file file)
{
	struct hr__thread *t = &hr_self;

	op->ring = t->ring; /* so that the end detects a change of the ring */
	if (hr_unlikely((file & HR__FD_ANNOUNCED) == 0 || !thread_ready(t))) {
		begin_unknown(op, id, fd, asked, offset, file);
		return;
	}
	op_set(op, id, file & ~HR__FD_ANNOUNCED, fd, asked, offset);
	op->start = hr__clock_tsc();
	hr__cell_enter(op, hr__file_bits(file));
}

void hr_begin_file(struct hr_op *op, enum hr_op_id id, hr_file file, int fd, uint64_t asked,
		   int64_t offset)
{
	op->live = false;
	if (file != HR_FILE_IGNORED && hr_shim_image.on)
		begin_slow(op, id, file, fd, asked, offset);
}

static bool op_name(struct hr_op *op, bool proved, int fd, bool tmpfile);

/*
 * Whether to read the path before the call, which can change its meaning (chdir) or destroy its
 * text: readlink may overwrite it, truncate may remove its page if it is in a mapped file.
 */
static bool resolves_early(enum hr_op_id id)
{
	switch (id) {
	case HR_OP_chdir:
	case HR_OP_readlink:
	case HR_OP_readlinkat:
	case HR_OP___readlink_chk:
	case HR_OP___readlinkat_chk:
	case HR_OP_truncate:
	case HR_OP_truncate64:
		return true;
	default:
		return false;
	}
}

/* At level off, returns NULL. The fd table is still updated, and the end checks the level. */
static struct hr_ring_hdr *ring_now(void)
{
	struct hr_ring_hdr *ring = hr_ring_current();

	return ring != NULL && !hr_level_off() ? ring : NULL;
}

void hr_begin_path(struct hr_op *op, enum hr_op_id id, int dirfd, const char *path, uint64_t asked)
{
	op->live = hr_shim_image.on && path != NULL;
	if (!op->live)
		return;
	op->id = (uint16_t)id;
	op->fd = -1;
	op->file = 0;
	op->offset = HR_OFFSET_NONE;
	op->asked = asked;
	op->path = path;
	op->dirfd = dirfd;
	op->ring = ring_now();
	if (op->ring != NULL && hr_self.slow.why[HR__SLOW_AGGREGATE] != 0)
		hr__ring_aggregate_flush();
	if (hr_unlikely(hr_self.slow.why[HR__SLOW_VFORK] != HR__VFORK_NO))
		hr__vfork_child();
	/* Under seccomp, the shim cannot test the path now. */
	if (hr_unlikely(resolves_early(id)) && !hr_shim_image.quiet) {
		op->live = op_name(op, hr__path_readable(path), -1, false);
		op->path = NULL;
		if (!op->live)
			return;
		op->ring = ring_now();
	}
	op->start = hr_shim_ticks();
	if (op->ring != NULL)
		cell_enter(op, 0);
	else
		bare_enter(op);
	hr_self.path = path;
}

/* ---- end --------------------------------------------------------------------------------------- */

/* Ends an operation that began without a ring, or in another session or process. */
static void end_elsewhere(struct hr_op *op, uint64_t end, int64_t ret, uint32_t flags,
			  const struct hr_pair *pair)
{
	struct hr_ring_hdr *began = op->ring;
	uint64_t ticks = end > op->start ? end - op->start : 0, session;
	bool off;

	/* A call with a path attaches again if the back-off has passed. */
	op->ring = hr__ring_for_op(op->path != NULL ? HR__SEEK_RETRY : HR__SEEK_NONE, &off);
	if (off)
		return;
	if (op->ring == NULL)
		op->ring = hr__ring_common();
	if (op->ring == NULL) {
		hr__counters_add(op->id, ret, op->asked, flags, ticks);
		return;
	}
	if (began == NULL && hr_shim_image.clock_switched)
		op->start = end = hr_shim_ticks(); /* both may have the previous clock's unit */
	/* The operation began in the parent or an earlier session. */
	session = __atomic_load_n(&hr_wiped.start_ticks, __ATOMIC_RELAXED);
	if (began != NULL && op->start < session)
		op->start = session;
	hr__ring_record(op, end, ret, flags, 0, pair);
}

static void op_finish(struct hr_op *op, uint64_t end, int64_t ret, uint32_t flags,
		      const struct hr_pair *pair)
{
	bool bare = op->ring == NULL;

	if (hr_likely(!bare && op->ring == hr_ring_current())) {
		hr__ring_record(op, end, ret, flags, 0, pair);
		cell_leave(op);
		return;
	}
	end_elsewhere(op, end, ret, flags, pair);
	if (bare)
		bare_leave(op);
}

void hr__end_none(struct hr_op *op)
{
	op->live = false;
	if (op->ring == NULL)
		bare_leave(op);
	else if (op->ring == hr_ring_current())
		cell_leave(op);
}

/*
 * Whether the path may be unreadable or changed after the call. The call may have failed before it
 * read the path, written a value over it, or truncated the mapped file that contains it.
 */
static bool path_doubtful(enum hr_op_id id, int64_t ret, uint32_t flags)
{
	switch (id) {
	case HR_OP_symlink:
	case HR_OP_symlinkat:
		return ret < 0;
	case HR_OP_getxattr:
	case HR_OP_lgetxattr:
		return ret > 0;
	default:
		/* O_TRUNC matters for an open; for other calls this bit only costs a system call */
		return (flags & O_TRUNC) != 0;
	}
}

/*
 * True: the path is readable. Success proves that, and so do errors of the look-up itself. If
 * another error (EINVAL for a bad flag) may precede the look-up, a system call tests the path.
 */
static bool path_readable_after(const struct hr_op *op, int64_t ret, uint32_t flags)
{
	if (path_doubtful(op->id, ret, flags) && !hr_shim_image.quiet)
		return hr__path_readable(op->path);
	switch (ret >= 0 ? 0 : -ret) {
	case 0:
	case ENOENT:
	case EEXIST:
	case ENOTDIR:
	case EACCES:
	case EISDIR:
	case ELOOP:
	case EROFS:
	case ENOTEMPTY:
	case EXDEV:
		return true;
	case EFAULT:
		return false;
	default:
		return hr__path_readable(op->path);
	}
}

/* Sends a path to the daemon, and returns its file. If fd >= 0, stores the file in the fd table. */
static hr_file name_file(const char *path, size_t bytes, int fd)
{
	uint32_t kind;
	hr_file file = hr__path_classify(path, bytes, &kind);
	struct hr__stat st = {.nlink = 1, .device = HR_OFFSET_NONE, .mount = -1};
	bool sent = false, off;

	if (hr_file_tracked(file) && fd >= 0 && !hr__path_sent(file, true, &file) &&
	    hr__stat_fd(fd, &st) && hr__stat_ignored(&st))
		file = HR_FILE_IGNORED;
	if (hr_file_tracked(file)) {
		hr__ring_for_op(HR__SEEK_RETRY, &off);
		if (!off)
			file = hr__path_announce(file, path, bytes, &st, &sent);
	} else if (fd >= 0 && kind < HR_EXCLUDED_KINDS) {
		hr__excluded_add(kind);
	}
	if (fd >= 0)
		hr__fd_open(fd, file, path, bytes, sent);
	return file;
}

/* Returns the file that the kernel has for a new descriptor, and sends its path. */
static hr_file name_by_kernel(int fd)
{
	hr_file file;
	bool off;

	hr_fd_clear(fd);
	file = hr_fd_get(fd);
	if (!hr_file_tracked(file))
		return file;
	hr__ring_for_op(HR__SEEK_RETRY, &off);
	return off ? file : hr__fd_announce(fd, file);
}

/* Sets op->file from op->path. Returns whether the operation is recorded. */
static bool op_name(struct hr_op *op, bool proved, int fd, bool tmpfile)
{
	static const char suffix[] = "#tmpfile";
	struct hr__text text;
	bool known;

	hr__text_init(&text);
	known = proved && hr__path_absolute(&text, op->dirfd, op->path);
	if (known && tmpfile) {
		size_t n = hr__path_append(text.bytes, text.length, hr__text_cap(&text), suffix,
					   sizeof(suffix) - 1);

		known = n > 0;
		text.length = n;
	}
	if (fd >= 0 && (!known || hr_unlikely(hr__linkname_is_open(text.bytes, text.length))))
		op->file = name_by_kernel(fd);
	else
		op->file = known ? name_file(text.bytes, text.length, fd) : HR_FILE_IGNORED;
	hr__text_done(&text);
	return hr_file_tracked(op->file);
}

static __attribute__((noinline)) void end_slow(struct hr_op *op, uint64_t end, int64_t ret,
					       uint32_t flags)
{
	if (op->path != NULL && !op_name(op, path_readable_after(op, ret, flags), -1, false))
		hr__end_none(op);
	else
		op_finish(op, end, ret, flags, NULL);
}

void hr__end(struct hr_op *op, int64_t ret, uint32_t flags)
{
	struct hr__thread *t = &hr_self;
	struct hr__place place = {.ring = op->ring, .mask = t->mask};
	struct hr_record *r;
	uint64_t end;

	if (hr_unlikely(op->path != NULL || !thread_ready(t) || place.ring != t->ring)) {
		end_slow(op, hr_shim_ticks(), ret, flags);
		return;
	}
	end = hr__clock_tsc();
	place.index = __atomic_load_n(&place.ring->head, __ATOMIC_RELAXED);
	if (hr_unlikely(place.index + 1 > t->limit ||
			!hr__cas_local(&place.ring->head, &place.index, place.index + 1))) {
		end_slow(op, end, ret, flags);
		return;
	}
	r = hr__ring_slot(&place, 0);
	hr__record_fill(r, op, end, ret, flags);
	r->bits = hr__file_bits(op->file);
	hr__ring_commit(&r->seq, place.index);
	hr__cell_leave(op);
	/* Prefetches the next slot, because the daemon's CPU core accessed it last. */
	hr__prefetch_write(hr__ring_slot(&place, 1));
}

void hr_end_open(struct hr_op *op, int fd, int64_t ret, uint32_t flags)
{
	uint64_t end;

	if (!op->live) {
		if (fd >= 0)
			hr_fd_clear(fd);
		return;
	}
	end = hr_shim_ticks();
	if (op->path == NULL && fd >= 0)
		hr_fd_set(fd, op->file);
	if (op->path != NULL && !op_name(op, path_readable_after(op, ret, flags), fd,
					 fd >= 0 && (flags & O_TMPFILE) == O_TMPFILE)) {
		hr__end_none(op);
		return;
	}
	op->fd = fd;
	op_finish(op, end, ret, flags, NULL);
}

void hr_end_pair(struct hr_op *op, hr_file second, int second_fd, int64_t second_offset,
		 int64_t ret, uint32_t flags)
{
	struct hr_pair pair = {
	    .offset = second_offset,
	    .fd = second_fd,
	    .op = HR_CTL_PAIR,
	};
	uint64_t end;

	if (!op->live)
		return;
	end = hr_shim_ticks();
	if (op->path != NULL && !op_name(op, path_readable_after(op, ret, flags), -1, false)) {
		if (!hr_file_tracked(second)) {
			hr__end_none(op);
			return;
		}
		op->file = 0; /* only the second file is recorded */
	}
	if (hr_file_tracked(second)) {
		second = second_fd >= 0 ? hr__fd_announce(second_fd, second) : second;
		pair.file = HR_FILE_ID(second);
		pair.bits = (uint32_t)(second & HR_FILE_RUNTIME);
	}
	op_finish(op, end, ret, flags, &pair);
}

hr_file hr_path_file(int dirfd, const char *path, bool proved)
{
	struct hr_op op = {.path = path, .dirfd = dirfd};

	if (!hr_shim_image.on || path == NULL || !(proved || hr__path_readable(path)))
		return HR_FILE_IGNORED;
	return op_name(&op, true, -1, false) ? op.file : HR_FILE_IGNORED;
}

/* ---- counts and cuts --------------------------------------------------------------------------- */

uint8_t hr_begin_buffer(void)
{
	return hr__bare_enter(HR_BARE_STDIO);
}

void hr_end_buffer(uint8_t outer)
{
	hr__bare_leave(outer);
}

static void count_start(struct hr_aggregate *a, enum hr_op_id id, int fd, hr_file file,
			uint64_t bytes)
{
	__atomic_store_n(&a->op, 0, __ATOMIC_RELEASE);
	a->gen++;
	a->file = HR_FILE_ID(file);
	a->start_ticks = hr_shim_ticks();
	a->ticks = 0;
	a->count = 1;
	a->bytes = bytes;
	a->fd = fd;
	a->bits = hr__file_bits(file);
	__atomic_store_n(&a->op, (uint16_t)id, __ATOMIC_RELEASE);
	hr_self.slow.why[HR__SLOW_AGGREGATE] = 1;
}

/* Writes a record for this call alone, because the thread has no aggregate of its own. */
static void count_one(struct hr_ring_hdr *ring, enum hr_op_id id, int fd, uint64_t bytes,
		      hr_file file)
{
	const struct hr_record head = {
	    .start_ticks = hr_shim_ticks(),
	    .file = HR_FILE_ID(file),
	    .offset = HR_OFFSET_NONE,
	    .ret = (int64_t)bytes,
	    .asked = 1,
	    .op = (uint16_t)id,
	    .fd = fd,
	    .bits = hr__file_bits(file) | HR_REC_AGGREGATE,
	};

	if (!hr_ring_control(&head, NULL, 0))
		hr_lost_add(ring, head.op, 1, bytes, 0);
}

static inline bool in_flight(const struct hr_ring_hdr *ring)
{
	return ring != NULL ? ring->inflight.op != HR_OP_NONE
			    : hr_self.slow.why[HR__SLOW_BARE] == HR_BARE_CALL;
}

void hr__count(enum hr_op_id id, int fd, uint64_t bytes, hr_file file)
{
	struct hr_ring_hdr *ring, *any;
	struct hr_aggregate *a;
	bool off;

	if (file == HR_FILE_UNKNOWN) {
		file = hr__fd_resolve(fd);
		if (!hr_file_tracked(file))
			return;
	}
	ring = hr__ring_for_op(HR__SEEK_FIRST, &off);
	if (off || (hr_unlikely(in_flight(ring)) && hr__count_reentered(ring, id, fd, file)))
		return;
	any = ring != NULL ? ring : hr__ring_common();
	if (hr_unlikely(any == NULL)) {
		hr__counters_add((uint16_t)id, (int64_t)bytes, HR_ASKED_NONE, 1, 0);
		return;
	}
	if (ring == NULL || hr__shared()) {
		count_one(any, id, fd, bytes, hr__fd_announce(fd, file & ~HR__FD_ANNOUNCED));
		return;
	}
	a = &ring->aggregate;
	if (hr_likely(hr_self.slow.why[HR__SLOW_AGGREGATE] != 0 && a->op == id && a->fd == fd &&
		      a->file == HR_FILE_ID(file))) {
		hr__add_local(&a->bytes, bytes);
		hr__add_local(&a->count, 1);
		if (hr_likely(a->count < HR_AGGREGATE_CALLS))
			return;
	}
	if (hr_self.slow.why[HR__SLOW_AGGREGATE] != 0) {
		bool same = a->op == id && a->fd == fd && a->file == HR_FILE_ID(file);

		hr__ring_aggregate_flush();
		if (same)
			return;
	}
	file = hr__fd_announce(fd, file & ~HR__FD_ANNOUNCED);
	count_start(a, id, fd, file, bytes);
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * op.c - begin and end of an operation
 *
 * Order at the end: clock, record, in-flight cell. A daemon that finds a process killed in between sees the
 * record and a cell with the same start; never neither.
 */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <string.h>

#include "shim/core/clock.h"
#include "shim/core/path.h"
#include "shim/core/ring.h"
#include "shim/core/sys.h"

extern const char *gnu_get_libc_version(void) __attribute__((weak));

static bool level_off(void)
{
	return __atomic_load_n(&hr__self.map->level, __ATOMIC_RELAXED) == HR_LEVEL_OFF;
}

struct hr_ring_hdr *hr__ring_for_op(enum hr__seek seek, bool *ret_off)
{
	struct hr_ring_hdr *ring = hr__ring_current();

	if (hr_unlikely(ring == NULL))
		ring = hr__ring_find(seek);
	*ret_off = (ring != NULL || hr__ring_common() != NULL) && level_off();
	return *ret_off ? NULL : ring;
}

/* The short way is open: this thread's ring is there, the clock is the TSC, nothing is special. */
static inline bool thread_ready(const struct hr__thread *t)
{
	/* Acquire: as in hr__ring_current. */
	return t->nonce == __atomic_load_n(&hr__wiped.nonce, __ATOMIC_ACQUIRE) && t->slow.any == 0;
}

/* The in-flight cell outside of the short way: two processes that share a thread cannot share it. */
static void cell_enter(struct hr_op *op, uint32_t bits)
{
	if (!hr__shared())
		hr__cell_enter(op, bits);
}

static void cell_leave(struct hr_op *op)
{
	/* The second half: begun before they did. */
	if (!hr__shared() ||
	    __atomic_load_n(&op->ring->inflight.start_ticks, __ATOMIC_RELAXED) == op->start)
		hr__cell_leave(op);
}

/*
 * Without a ring the thread says that something is under way, and since when, for probes and for the hello of an attach at
 * the end. The frame of the outermost one tells whether a jump leaves it.
 */
static void bare_enter(struct hr_op *op)
{
	struct hr__thread *t = &hr__self;

	/* Child handlers of pthread_atfork run before fork() returns to its wrapper. */
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
		hr__self.began = 0;
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

/* What thread_ready leaves out, on the way into an operation. */
static void specialities(struct hr__thread *t)
{
	if (t->slow.why[HR__SLOW_AGGREGATE] != 0)
		hr__ring_aggregate_flush();
	if (t->slow.why[HR__SLOW_VFORK] != HR__VFORK_NO)
		hr__vfork_child();
}

/* `file` without HR__FD_ANNOUNCED; HR_FILE_UNKNOWN: the operation has none. */
static void begin_slow(struct hr_op *op, enum hr_op_id id, hr_file file, int fd, uint64_t asked,
		       int64_t offset)
{
	bool off;

	op->ring = hr__ring_for_op(HR__SEEK_FIRST, &off);
	op->live = !off;
	if (off)
		return;
	if (hr__ring_any() != NULL) {
		specialities(&hr__self);
		if (hr_file_tracked(file))
			file = hr__fd_announce(fd, file);
	}
	op_set(op, id, file, fd, asked, offset);
	op->start = hr__clock_ticks();
	if (op->ring != NULL)
		cell_enter(op, hr__file_bits(file));
	else
		bare_enter(op);
}

static __attribute__((noinline)) void begin_unknown(struct hr_op *op, enum hr_op_id id, int fd,
						    uint64_t asked, int64_t offset, hr_file file)
{
	if (file == HR_FILE_UNKNOWN || (hr__in_vfork_child() && hr__self.child_fds))
		file = hr__fd_resolve(fd);
	if (hr_file_tracked(file))
		begin_slow(op, id, file & ~HR__FD_ANNOUNCED, fd, asked, offset);
	else
		op->live = false;
}

void hr__begin_fd(struct hr_op *op, enum hr_op_id id, int fd, uint64_t asked, int64_t offset,
		  hr_file file)
{
	struct hr__thread *t = &hr__self;

	op->ring = t->ring; /* before the check: what changes after it is another session's */
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
	if (file != HR_FILE_IGNORED && hr__image.on)
		begin_slow(op, id, file, fd, asked, offset);
}

static bool op_name(struct hr_op *op, bool proved, int fd, bool tmpfile);

/*
 * Calls after which the name may mean another place (chdir), or be gone: readlink may write over it, truncate
 * may take away the page of the file that it lies in.
 */
static bool names_early(enum hr_op_id id)
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

/* Level off: the table is kept true all the same, and the level looked at again in the end. */
static struct hr_ring_hdr *ring_now(void)
{
	struct hr_ring_hdr *ring = hr__ring_current();

	return ring != NULL && !level_off() ? ring : NULL;
}

void hr_begin_path(struct hr_op *op, enum hr_op_id id, int dirfd, const char *path, uint64_t asked)
{
	op->live = hr__image.on && path != NULL;
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
	if (op->ring != NULL && hr__self.slow.why[HR__SLOW_AGGREGATE] != 0)
		hr__ring_aggregate_flush();
	if (hr_unlikely(hr__self.slow.why[HR__SLOW_VFORK] != HR__VFORK_NO))
		hr__vfork_child();
	/* Under seccomp nobody can be asked whether it is readable: chdir alone cannot do without. */
	if (hr_unlikely(names_early(id)) && (id == HR_OP_chdir || !hr__image.quiet)) {
		op->live = op_name(op, hr__path_readable(path), -1, false);
		op->path = NULL;
		if (!op->live)
			return;
		op->ring = ring_now(); /* the name may have attached */
	}
	op->start = hr__clock_ticks();
	if (op->ring != NULL)
		cell_enter(op, 0);
	else
		bare_enter(op);
	hr__self.path = path;
}

/* ---- end --------------------------------------------------------------------------------------- */

/* Without the ring that it began on: detached, or another session or thread by now. */
static void end_elsewhere(struct hr_op *op, uint64_t end, int64_t ret, uint32_t flags,
			  const struct hr_pair *pair)
{
	struct hr_ring_hdr *began = op->ring;
	uint64_t ticks = end > op->start ? end - op->start : 0;
	bool off;

	/* op->path still set: a path call, which may attach as late as here. */
	op->ring = hr__ring_for_op(op->path != NULL ? HR__SEEK_RETRY : HR__SEEK_FIRST, &off);
	if (off)
		return;
	if (op->ring == NULL)
		op->ring = hr__ring_common();
	if (op->ring == NULL) {
		hr__counters_add(op->id, ret, op->asked, flags, ticks);
		return;
	}
	if (began == NULL && hr__image.clock_switched)
		op->start = end = hr__clock_ticks(); /* both may be of another clock */
	if (began != NULL && op->start < hr__wiped.start_ticks)
		op->start =
		    hr__wiped.start_ticks; /* begun in the parent, ended in its forked child */
	hr__ring_record(op, end, ret, flags, 0, pair);
}

static void op_finish(struct hr_op *op, uint64_t end, int64_t ret, uint32_t flags,
		      const struct hr_pair *pair)
{
	bool bare = op->ring == NULL;

	if (hr_likely(!bare && op->ring == hr__ring_current())) {
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
	else if (op->ring == hr__ring_current())
		cell_leave(op);
}

/*
 * The call may have ended before it read the path (an empty target), or have written over it or taken its page
 * away since (a value on top of it, a file cut short that it lies in).
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
		return (flags & O_TRUNC) != 0; /* of an open; what else it may mean does no harm */
	}
}

/*
 * The caller's path, now that the kernel has read it: success proves that, and so do errors that come after
 * the look-up. Others (EINVAL for a bad flag) may come before it: then the kernel is asked.
 */
static bool path_proved(const struct hr_op *op, int64_t ret, uint32_t flags)
{
	if (path_doubtful(op->id, ret, flags) && !hr__image.quiet)
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

/* Identity of the named file, told to the daemon; fd >= 0: open on it, entered into the table. */
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

/* Finds op->file from op->path. False: nothing to record. */
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
	op->file = known ? name_file(text.bytes, text.length, fd) : HR_FILE_IGNORED;
	if (!known && fd >= 0)
		hr_fd_forget(fd); /* asked of the kernel when it is used */
	hr__text_done(&text);
	return hr_file_tracked(op->file);
}

static __attribute__((noinline)) void end_slow(struct hr_op *op, uint64_t end, int64_t ret,
					       uint32_t flags)
{
	if (op->path != NULL && !op_name(op, path_proved(op, ret, flags), -1, false))
		hr__end_none(op);
	else
		op_finish(op, end, ret, flags, NULL);
}

void hr__end(struct hr_op *op, int64_t ret, uint32_t flags)
{
	struct hr__thread *t = &hr__self;
	struct hr__place place = {.ring = op->ring, .mask = t->mask};
	struct hr_record *r;
	uint64_t end;

	if (hr_unlikely(op->path != NULL || !thread_ready(t) || place.ring != t->ring)) {
		end_slow(op, hr__clock_ticks(), ret, flags);
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
	/* The daemon's core has read the next slot a lap ago: get it back while the program goes on. */
	hr__prefetch_write(hr__ring_slot(&place, 1));
}

void hr_end_open(struct hr_op *op, int fd, int64_t ret, uint32_t flags)
{
	uint64_t end;

	if (!op->live) {
		if (fd >= 0)
			hr_fd_forget(fd);
		return;
	}
	end = hr__clock_ticks();
	if (op->path == NULL && fd >= 0)
		hr_fd_set(fd, op->file);
	if (op->path != NULL && !op_name(op, path_proved(op, ret, flags), fd,
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
	end = hr__clock_ticks();
	if (op->path != NULL && !op_name(op, path_proved(op, ret, flags), -1, false)) {
		if (!hr_file_tracked(second)) {
			hr__end_none(op);
			return;
		}
		op->file = 0; /* from an excluded place to a traced one */
	}
	if (hr_file_tracked(second)) {
		second = second_fd >= 0 ? hr__fd_announce(second_fd, second) : second;
		pair.file = HR_FILE_ID(second);
		pair.bits = (uint32_t)(second & HR_FILE_RUNTIME);
	}
	op_finish(op, end, ret, flags, &pair);
}

hr_file hr_path_file(int dirfd, const char *path)
{
	struct hr_op op = {.path = path, .dirfd = dirfd};

	if (!hr__image.on || path == NULL || !hr__path_readable(path))
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
	a->start_ticks = hr__clock_ticks();
	a->ticks = 0;
	a->count = 1;
	a->bytes = bytes;
	a->fd = fd;
	a->bits = hr__file_bits(file);
	__atomic_store_n(&a->op, (uint16_t)id, __ATOMIC_RELEASE);
	hr__self.slow.why[HR__SLOW_AGGREGATE] = 1;
}

/* A record for one call: where the thread's aggregate is not ours alone. */
static void count_one(struct hr_ring_hdr *ring, enum hr_op_id id, int fd, uint64_t bytes,
		      hr_file file)
{
	const struct hr_record head = {
	    .start_ticks = hr__clock_ticks(),
	    .file = HR_FILE_ID(file),
	    .offset = HR_OFFSET_NONE,
	    .ret = (int64_t)bytes,
	    .asked = 1,
	    .op = (uint16_t)id,
	    .fd = fd,
	    .bits = hr__file_bits(file) | HR_REC_AGGREGATE,
	};

	if (!hr__ring_control(&head, NULL, 0))
		hr__lost_add(ring, head.op, 1, bytes, 0);
}

/* Is an operation of this thread under way? */
static inline bool under_way(const struct hr_ring_hdr *ring)
{
	return ring != NULL ? ring->inflight.op != HR_OP_NONE
			    : hr__self.slow.why[HR__SLOW_BARE] == HR_BARE_CALL;
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
	if (off || (hr_unlikely(under_way(ring)) && hr__count_reentered(ring, id, fd, file)))
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
	if (hr_likely(hr__self.slow.why[HR__SLOW_AGGREGATE] != 0 && a->op == id && a->fd == fd &&
		      a->file == HR_FILE_ID(file))) {
		hr__add_local(&a->bytes, bytes);
		hr__add_local(&a->count, 1);
		if (hr_likely(a->count < HR_AGGREGATE_CALLS))
			return;
	}
	if (hr__self.slow.why[HR__SLOW_AGGREGATE] != 0) {
		bool same = a->op == id && a->fd == fd && a->file == HR_FILE_ID(file);

		hr__ring_aggregate_flush();
		if (same)
			return;
	}
	file = hr__fd_announce(fd, file & ~HR__FD_ANNOUNCED);
	count_start(a, id, fd, file, bytes);
}

/*
 * The stack pointer that a jump will set, as setjmp has kept it: word 6 on x86-64, in glibc exclusive-or'ed with the
 * thread's pointer guard and rotated (the same since 2.4), plain in musl. On aarch64 it is word 13 of both, and what
 * glibc has exclusive-or'ed with it, nothing in musl, shows where setjmp has kept a stack pointer that is known.
 */
static uintptr_t jump_target(const void *env)
{
#if defined(__x86_64__)
	uintptr_t sp = ((const uintptr_t *)env)[6], guard;

	if (gnu_get_libc_version == NULL)
		return sp;
	__asm__("mov %%fs:0x30, %0" : "=r"(guard));
	return (sp >> 17 | sp << 47) ^ guard;
#else
	uintptr_t here;
	jmp_buf own;

	(void)_setjmp(own);
	__asm__("mov %0, sp" : "=r"(here));
	return ((const uintptr_t *)env)[13] ^ ((const uintptr_t *)own)[13] ^ here;
#endif
}

/*
 * Does the jump end in a frame below that of the operation in flight? Then a signal handler jumps about inside
 * itself, and will still return into the operation. On an alternate stack above the operation's this is not seen:
 * the operation then shows as cut, and once more when it ends.
 */
static bool jump_stays(const void *env)
{
	uintptr_t target = jump_target(env);

	return target > (uintptr_t)__builtin_frame_address(0) && target < hr__self.frame;
}

void hr_before_longjmp(const void *env)
{
	struct hr_ring_hdr *ring = hr__ring_current();
	uint8_t bare = hr__self.slow.why[HR__SLOW_BARE];
	struct hr_inflight cell;

	if (bare != HR_BARE_NOT && (bare != HR_BARE_CALL || !jump_stays(env))) {
		hr__bare_leave(HR_BARE_NOT);
		hr__self.began = 0;
	}
	if (ring == NULL ||
	    __atomic_load_n(hr__cell_word(&ring->inflight), __ATOMIC_RELAXED) == 0 ||
	    jump_stays(env))
		return;
	cell = ring->inflight;
	if (cell.op != 0)
		hr__ring_cut(ring, &cell, hr__clock_ticks());
	__atomic_store_n(hr__cell_word(&ring->inflight), 0, __ATOMIC_RELEASE);
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * wrap_syscall.c - libc's syscall()
 *
 * The wrapper forwards the number and six words unchanged to libc's own syscall(). The operation
 * gets the name of the libc function for this system call. A table gives the positions of
 * descriptor, path, size, offset and flags among the words.
 *
 * The wrapper calls only libc's syscall(), never the libc function for that system call or its
 * wrapper. If a library replaced mmap() by a function that calls syscall(SYS_mmap), the recursion
 * would be endless.
 */
#include <linux/openat2.h>
#include <sched.h>
#include <string.h>
#include <sys/prctl.h>

#include "shim/core/clock.h"
#include "shim/wrap/wrap.h"
#include "shim/wrap/wrap_thunk.h"

HR_THUNK_SYSCALL

enum how {
	HOW_NONE, /* the wrapper only forwards the call */
	HOW_FD,
	HOW_PATH, /* the word before the path is the dirfd, or there is none */
	HOW_TWO,  /* two paths: a dirfd precedes each of them, or none does */
	HOW_OPEN,
	HOW_OPEN_FD, /* the file is that of the new descriptor */
	HOW_CLOSE,
	HOW_CLOSE_RANGE,
	HOW_DUP,
	HOW_DUP_TO,
	HOW_FCNTL,
	HOW_VECTOR,
	HOW_COPY, /* copy_file_range, splice */
	HOW_SENDFILE,
	HOW_CHDIR,
	HOW_FCHDIR,
	HOW_MMAP,
	HOW_MUNMAP,
	HOW_MREMAP,
	HOW_MAP, /* madvise, msync */
	HOW_SECCOMP,
	HOW_PRCTL,
	HOW_SUBMIT, /* io_submit */
	HOW_REAP,   /* io_getevents, io_pgetevents */
	HOW_LEAVE
};

/* Each position is the number of a word, from 1 to 6. 0: the call has no such word. */
struct shape {
	uint16_t id; /* enum hr_op_id */
	uint8_t how;
	uint8_t file; /* position of the descriptor or path */
	uint8_t asked;
	uint8_t offset;
	uint8_t flags;
	uint8_t at; /* 1: a dirfd precedes the path */
};

static const struct shape shapes[] = {
#define ROW(number, name, how, ...) [SYS_##number] = {HR_OP_##name, HOW_##how, __VA_ARGS__},
#include "proto/syscalls.def"
#undef ROW
#define HOOK(number, way) [SYS_##number] = {.how = HOW_##way},
#include "proto/syscalls.def"
#undef HOOK
};

/* One call of syscall(). word[0] is unused, because positions count from 1. */
struct call {
	const struct shape *shape;
	long number;
	long word[7];
};

static inline long forward(const struct call *c)
{
	return HR_REAL(syscall)(c->number, c->word[1], c->word[2], c->word[3], c->word[4],
				c->word[5], c->word[6]);
}

static inline uint32_t flags_of(const struct call *c)
{
	return c->shape->flags != 0 ? (uint32_t)c->word[c->shape->flags] : 0;
}

static inline uint64_t asked_of(const struct call *c)
{
	return c->shape->asked != 0 ? (uint64_t)c->word[c->shape->asked] : HR_ASKED_NONE;
}

static inline int fd_of(const struct call *c)
{
	return (int)c->word[c->shape->file];
}

static inline const char *path_of(const struct call *c, unsigned place)
{
	return (const char *)c->word[place];
}

static inline int dirfd_of(const struct call *c, unsigned place)
{
	return c->shape->at != 0 ? (int)c->word[place - 1] : AT_FDCWD;
}

static void begin_fd(struct hr_op *op, const struct call *c)
{
	int64_t offset = c->shape->offset != 0 ? c->word[c->shape->offset] : HR_OFFSET_NONE;

	hr_begin_fd(op, c->shape->id, fd_of(c), asked_of(c), offset);
}

static void begin_path(struct hr_op *op, const struct call *c)
{
	/* Only flags of an open may use the bit of AT_EMPTY_PATH for something else. */
	int at_flags = c->shape->how != HOW_OPEN ? (int)flags_of(c) : 0;

	hr_begin_at(op, c->shape->id, dirfd_of(c, c->shape->file), path_of(c, c->shape->file),
		    at_flags, asked_of(c));
}

static void finish_vector(struct hr_op *op, const struct call *c, long r)
{
	if (r >= 0)
		op->asked = hr_iov_bytes((const struct iovec *)c->word[2], (int)c->word[3]);
	if (op->offset == -1)
		op->offset = HR_OFFSET_NONE;
}

static long record_fd(const struct call *c)
{
	struct hr_op op;
	long r;

	begin_fd(&op, c);
	r = forward(c);
	if (c->shape->how == HOW_VECTOR && op.live)
		finish_vector(&op, c, r);
	hr_end(&op, hr_ret(r), flags_of(c));
	return r;
}

static long record_path(const struct call *c)
{
	struct hr_op op;
	long r;

	begin_path(&op, c);
	r = forward(c);
	hr_end(&op, hr_ret(r), flags_of(c));
	return r;
}

static long record_two(const struct call *c)
{
	unsigned to = c->shape->file + (c->shape->at != 0 ? 2 : 1);
	struct hr_op op;
	long r;

	begin_path(&op, c);
	r = forward(c);
	hr_end_two(&op, dirfd_of(c, to), path_of(c, to), hr_ret(r), flags_of(c));
	return r;
}

/* The flags of openat2 are in a structure, which may be a bad pointer if the call failed. */
static uint32_t open_flags(const struct call *c, long r)
{
#ifdef SYS_openat2
	if (c->number == SYS_openat2)
		return r >= 0 ? (uint32_t)((const struct open_how *)c->word[3])->flags : 0;
#endif
	return flags_of(c);
}

static long record_open(const struct call *c)
{
	struct hr_op op;
	long r;

	begin_path(&op, c);
	r = forward(c);
	hr_end_open(&op, (int)r, hr_ret(r), open_flags(c, r));
	return r;
}

static long record_open_fd(const struct call *c)
{
	uint64_t start = hr_shim_ticks();
	long r = forward(c);

	hr__record_made_fd(c->shape->id, start, (int)r, flags_of(c));
	return r;
}

static long record_close(const struct call *c)
{
	struct hr_op op;
	long r;

	begin_fd(&op, c);
	hr_fd_clear(fd_of(c));
	r = forward(c);
	hr_end(&op, hr_ret(r), 0);
	return r;
}

static long record_dup(const struct call *c)
{
	int fd = fd_of(c), to = (int)c->word[2];
	bool dups = c->shape->how == HOW_DUP ||
		    (c->shape->how == HOW_FCNTL && hr_fcntl_dups((int)c->word[2]));
	struct hr_op op;
	long r;

	begin_fd(&op, c);
	if (c->shape->how == HOW_DUP_TO)
		hr_before_dup(fd, to);
	r = forward(c);
	if (c->shape->how == HOW_DUP_TO)
		hr_after_dup(fd, to, (int)r);
	else if (dups && r >= 0)
		hr_fd_set((int)r, hr_fd_get(fd));
	hr_end(&op, hr_ret(r), flags_of(c));
	return r;
}

static long record_copy(const struct call *c)
{
	bool sends = c->shape->how == HOW_SENDFILE;
	int in = (int)c->word[sends ? 2 : 1], out = (int)c->word[sends ? 1 : 3];
	const off64_t *in_offset = (const off64_t *)c->word[sends ? 3 : 2];
	const off64_t *out_offset = sends ? NULL : (const off64_t *)c->word[4];
	struct hr_op op;
	hr_file second = hr__begin_copy(&op, c->shape->id, in, out, asked_of(c));
	long r = forward(c);

	hr__end_copy(&op, second, out, in_offset, out_offset, hr_ret(r), flags_of(c));
	return r;
}

static long record_chdir(const struct call *c)
{
	struct hr_op op;
	long r;

	if (c->shape->how == HOW_CHDIR)
		begin_path(&op, c);
	else
		begin_fd(&op, c);
	r = forward(c);
	if (r == 0)
		hr_cwd_changed();
	hr_end(&op, hr_ret(r), 0);
	return r;
}

static long record_mmap(const struct call *c)
{
	int prot = (int)c->word[3], flags = (int)c->word[4];
	struct hr_op op;
	long r;

	hr_begin_mmap(&op, c->shape->id, (void *)c->word[1], (size_t)c->word[2], flags,
		      (int)c->word[5], c->word[6]);
	r = forward(c);
	hr_end_mmap(&op, (void *)r, (size_t)c->word[2], hr_map_flags(prot, flags));
	return r;
}

static long record_munmap(const struct call *c)
{
	struct hr_op op;
	long r;

	hr_begin_munmap(&op, (void *)c->word[1], (size_t)c->word[2]);
	r = forward(c);
	hr_end(&op, hr_ret(r), 0);
	return r;
}

static long record_mremap(const struct call *c)
{
	const void *addr = (const void *)c->word[1];
	size_t old = (size_t)c->word[2], n = (size_t)c->word[3];
	const void *to = (c->word[4] & MREMAP_FIXED) != 0 ? (const void *)c->word[5] : NULL;
	struct hr_op op;
	hr_file file = hr_begin_mremap(&op, addr, old, n, to);
	long r = forward(c);

	hr_end_mremap(&op, file, addr, old, (const void *)r, n, flags_of(c));
	return r;
}

static long record_map(const struct call *c)
{
	struct hr_op op;
	long r;

	hr_begin_map(&op, c->shape->id, (const void *)c->word[c->shape->file], asked_of(c));
	r = forward(c);
	hr_end(&op, hr_ret(r), flags_of(c));
	return r;
}

static long record_submit(const struct call *c)
{
	struct iocb **list = (struct iocb **)c->word[3];
	struct hr__submission s;
	long r;

	hr__submit_begin(&s, c->word[2], list);
	r = forward(c);
	hr__submit_end(&s, list, hr_ret(r));
	return r;
}

static long record_reap(const struct call *c)
{
	long r = forward(c);

	hr__requests_over((const struct io_event *)c->word[4], r);
	return r;
}

static long record_hook(const struct call *c)
{
	unsigned long program = (unsigned long)c->word[3];
	bool filter = false;
	long r;

	switch (c->shape->how) {
	case HOW_CLOSE_RANGE:
		hr_before_close_range((unsigned)c->word[1], (unsigned)c->word[2],
				      (unsigned)c->word[3]);
		break;
	case HOW_SECCOMP:
		filter = hr_before_seccomp_call(c->word[1], program);
		break;
	case HOW_PRCTL:
		filter = hr_before_prctl(c->word[1], (unsigned long)c->word[2], program);
		break;
	default:
		if (c->number == SYS_unshare)
			hr_before_unshare((unsigned)c->word[1]);
		else
			hr_before_leaving();
	}
	r = forward(c);
	if (filter && r < 0)
		hr_seccomp_failed();
	return r;
}

long hr__syscall_record(long number, long a, long b, long c, long d, long e, long f)
{
	struct call call = {.number = number, .word = {0, a, b, c, d, e, f}};

	if ((unsigned long)number >= sizeof(shapes) / sizeof(shapes[0]))
		return forward(&call);
	call.shape = &shapes[number];
	switch (call.shape->how) {
	case HOW_NONE:
		return forward(&call);
	case HOW_FD:
	case HOW_VECTOR:
		return record_fd(&call);
	case HOW_PATH:
		return record_path(&call);
	case HOW_TWO:
		return record_two(&call);
	case HOW_OPEN:
		return record_open(&call);
	case HOW_OPEN_FD:
		return record_open_fd(&call);
	case HOW_CLOSE:
		return record_close(&call);
	case HOW_DUP:
	case HOW_DUP_TO:
	case HOW_FCNTL:
		return record_dup(&call);
	case HOW_COPY:
	case HOW_SENDFILE:
		return record_copy(&call);
	case HOW_CHDIR:
	case HOW_FCHDIR:
		return record_chdir(&call);
	case HOW_MMAP:
		return record_mmap(&call);
	case HOW_MUNMAP:
		return record_munmap(&call);
	case HOW_MREMAP:
		return record_mremap(&call);
	case HOW_MAP:
		return record_map(&call);
	case HOW_SUBMIT:
		return record_submit(&call);
	case HOW_REAP:
		return record_reap(&call);
	default:
		return record_hook(&call);
	}
}

/*
 * The flags are the first word of clone3's arguments. Programs may pass NULL, to test whether the
 * call exists. Then the call fails, and the mark of the thread costs one getpid.
 */
static uint64_t clone3_flags(const void *arguments)
{
	uint64_t flags;

	if (!hr_readable(arguments))
		return CLONE_VM | CLONE_VFORK;
	memcpy(&flags, arguments, sizeof(flags));
	return flags;
}

/* For system calls that create a process. `a` contains the flags; for clone3, a pointer to them. */
void *hr__syscall_target(long number, unsigned long a)
{
	uint64_t flags = CLONE_VM | CLONE_VFORK;

	if (number == SYS_clone)
		flags = a;
	else if (number == HR_SYS_CLONE3)
		flags = clone3_flags((const void *)a);
#ifdef SYS_fork
	else if (number == SYS_fork)
		flags = 0;
#endif
	hr_before_clone(flags);
	return hr_real_get(HR_OP_syscall);
}

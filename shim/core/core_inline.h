/* SPDX-License-Identifier: Apache-2.0 */
/*
 * core_inline.h - the part of core.h that every wrapper inlines; only the end of core.h includes it
 *
 * Only the look-up in the fd table is inline, so an operation on an ignored descriptor costs one
 * load and one comparison. Readers load an entry relaxed, because they read no other data with it.
 * The constructor makes the table. While limit is 0 (before the constructor, with HEADRACE=off, in
 * a deselected rank), all descriptors are ignored.
 */
#ifndef HEADRACE_SHIM_CORE_CORE_INLINE_H
#define HEADRACE_SHIM_CORE_CORE_INLINE_H

struct hr__fdtab {
	hr_file *entries;
	uint32_t limit; /* number of entries; stored after the pointer to them */
	bool split;	/* hr_fds_split() was called: all entries stay unknown */
};
extern struct hr__fdtab hr__fdtab;

/* The parts that are not inlined. `file` is the entry of the fd table. */
void hr__begin_fd(struct hr_op *op, enum hr_op_id id, int fd, uint64_t asked, int64_t offset,
		  hr_file file);
void hr__end(struct hr_op *op, int64_t ret, uint32_t flags);
void hr__end_none(struct hr_op *op);
void hr__count(enum hr_op_id id, int fd, uint64_t bytes, hr_file file);

static inline hr_file hr__fd_peek(int fd)
{
	uint32_t limit = __atomic_load_n(&hr__fdtab.limit, __ATOMIC_RELAXED);

	if (hr_unlikely((uint32_t)fd >= limit))
		return fd < 0 || limit == 0 ? HR_FILE_IGNORED : HR_FILE_UNKNOWN;
	return __atomic_load_n(&hr__fdtab.entries[fd], __ATOMIC_RELAXED);
}

/*
 * Whether a call on fd is not recorded. A wrapper that tests this first can tail-call the original.
 * If the wrapper called the original and then returned, the CPU would mispredict the return (7 ns).
 */
static inline bool hr_fd_ignored(int fd)
{
	return hr__fd_peek(fd) == HR_FILE_IGNORED;
}

static inline void hr_begin_fd(struct hr_op *op, enum hr_op_id id, int fd, uint64_t asked,
			       int64_t offset)
{
	hr_file file = hr__fd_peek(fd);

	if (file == HR_FILE_IGNORED)
		op->live = false;
	else
		hr__begin_fd(op, id, fd, asked, offset, file);
}

static inline void hr_end(struct hr_op *op, int64_t ret, uint32_t flags)
{
	if (op->live)
		hr__end(op, ret, flags);
}

static inline void hr_end_none(struct hr_op *op)
{
	if (op->live)
		hr__end_none(op);
}

static inline void hr_count(enum hr_op_id id, int fd, uint64_t bytes)
{
	hr_file file = hr__fd_peek(fd);

	if (file != HR_FILE_IGNORED)
		hr__count(id, fd, bytes, file);
}

#endif

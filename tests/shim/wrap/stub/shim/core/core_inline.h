/* SPDX-License-Identifier: Apache-2.0 */
/*
 * core_inline.h - stands in for shim/core/core_inline.h: the wrappers under test run on stub_core.c
 */
#ifndef HEADRACE_STUB_CORE_INLINE_H
#define HEADRACE_STUB_CORE_INLINE_H

void stub_begin_fd(struct hr_op *op, enum hr_op_id id, int fd, uint64_t asked, int64_t offset);
void stub_end(struct hr_op *op, int64_t ret, uint32_t flags);
void stub_count(enum hr_op_id id, int fd, uint64_t bytes);

static inline bool hr_fd_ignored(int fd)
{
	return hr_fd_get(fd) == HR_FILE_IGNORED;
}

static inline void hr_begin_fd(struct hr_op *op, enum hr_op_id id, int fd, uint64_t asked,
			       int64_t offset)
{
	stub_begin_fd(op, id, fd, asked, offset);
}

static inline void hr_end(struct hr_op *op, int64_t ret, uint32_t flags)
{
	stub_end(op, ret, flags);
}

static inline void hr_end_none(struct hr_op *op)
{
	op->live = false;
}

static inline void hr_count(enum hr_op_id id, int fd, uint64_t bytes)
{
	stub_count(id, fd, bytes);
}

#endif

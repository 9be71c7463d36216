/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ops.h - the table of operations, generated from proto/calls.def and proto/kernel.def
 *
 * Ids are never reused. A name is that of a libc function, or is from kernel.def. Constant data.
 */
#ifndef HEADRACE_COMMON_OPS_H
#define HEADRACE_COMMON_OPS_H

#include <stdbool.h>
#include <stdint.h>

#include "proto/abi.h"

/* `class` of the SQL tables. HR_CLASS_HOOK: wrapped for the shim's own needs, never an event. */
enum hr_class {
	HR_CLASS_NONE,
	HR_CLASS_OPEN,
	HR_CLASS_READ,
	HR_CLASS_WRITE,
	HR_CLASS_SEEK,
	HR_CLASS_STAT,
	HR_CLASS_SYNC,
	HR_CLASS_CLOSE,
	HR_CLASS_DIR,
	HR_CLASS_META,
	HR_CLASS_MAP,
	HR_CLASS_HOOK
};

enum hr_api { HR_API_NONE, HR_API_POSIX, HR_API_STDIO, HR_API_AIO, HR_API_MMAP, HR_API_URING };

/*
 * File records also count two things that are no operations: single characters, and each side of a
 * copy. Roll-ups count these under the following ids, so that file records and roll-ups have the
 * same totals.
 */
enum hr_side {
	HR_SIDE_NONE,
	HR_SIDE_SINGLE_READ,
	HR_SIDE_SINGLE_WRITE,
	HR_SIDE_COPY_READ,
	HR_SIDE_COPY_WRITE,
	HR_SIDE_END
};
_Static_assert((int)HR_SIDE_END <= (int)HR_OP_FIRST, "no op has these numbers");

static inline bool hr_side_reads(unsigned side)
{
	return side == HR_SIDE_SINGLE_READ || side == HR_SIDE_COPY_READ;
}

static inline bool hr_side_single(unsigned side)
{
	return side == HR_SIDE_SINGLE_READ || side == HR_SIDE_SINGLE_WRITE;
}

/*
 * How the number of bytes of an operation is computed. A failed call has 0 bytes. With
 * HR_BYTES_NONE, the operation has no number of bytes.
 */
enum hr_bytes_rule {
	HR_BYTES_NONE,	/* the call moves no data */
	HR_BYTES_RET,	/* the result */
	HR_BYTES_ITEMS, /* result * flags: it counts items of `flags` bytes (fread, fwrite) */
	HR_BYTES_ASKED	/* the requested bytes, if the call succeeded */
};

struct hr_op_info {
	const char *name; /* "pread64"; NULL: the id is unknown */
	uint8_t class;
	uint8_t api;
	uint8_t bytes_rule;
};

#define HR_CALL(id, ret, name, params, args, class, api, bytes_rule, ...) HR_OP_##name = (id),
#define HR_KERNEL(id, name, class, api, bytes_rule)			  HR_OP_##name = (id),
enum hr_op_id {
	HR_OP_NONE = 0,
#include "proto/calls.def"
#include "proto/kernel.def"
};
#undef HR_CALL
#undef HR_KERNEL

/* Never returns NULL. For an unknown id, the name is NULL and the class is NONE. */
const struct hr_op_info *hr_op_info(uint16_t op);

/* Whether the op copies between two files: a read of the first, and a write of the second. */
bool hr_op_copies(uint16_t op);

uint16_t hr_op_by_name(const char *name); /* 0: unknown */

/* Return "open", "read"... and "posix"... For a number out of range, return NULL. */
const char *hr_class_name(unsigned class);
const char *hr_api_name(unsigned api);

static inline uint64_t hr_bytes_moved(unsigned rule, int64_t ret, uint64_t asked, uint32_t flags)
{
	if (rule == HR_BYTES_NONE)
		return UINT64_MAX;
	if (ret <= 0 && !(rule == HR_BYTES_ASKED && ret == 0))
		return 0;
	switch (rule) {
	case HR_BYTES_RET:
		return (uint64_t)ret;
	case HR_BYTES_ITEMS:
		return (uint64_t)ret * flags;
	default:
		return asked == HR_ASKED_NONE ? 0 : asked;
	}
}

#endif

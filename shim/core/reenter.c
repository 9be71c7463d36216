/* SPDX-License-Identifier: Apache-2.0 */
/*
 * reenter.c - original functions that call wrappers
 *
 * Allocators, communication libraries and tracers define functions that the shim wraps, too. Such a
 * function may call another wrapped function (open calls openat), or syscall(). Some libraries
 * patch libc's mapping functions in place. The program made one call, so only the outer operation
 * is recorded. A signal handler that interrupts libc's own function is not affected.
 */
#include "shim/core/ring.h"

#define HR_CALL(id, ret, name, params, args, class, ...) [id] = HR_CLASS_##class,
static const uint8_t classes[HR_OP_MAX] = {
#include "proto/calls.def"
};
#undef HR_CALL

static bool calls_back(uint16_t id)
{
	return hr_real_foreign[id] || hr_real_foreign[HR_OP_syscall] || classes[id] == HR_CLASS_MAP;
}

bool hr__reentered(const struct hr_op *op, uint16_t outer, int32_t outer_fd, uint64_t outer_file)
{
	if (outer >= HR_OP_MAX || !calls_back(outer) || classes[outer] != classes[op->id] ||
	    outer_fd != op->fd)
		return false;
	/* Equal descriptors suffice: close() has already cleared the entry of the fd table. */
	return op->fd >= 0 || (outer_file == HR_FILE_ID(op->file) &&
			       (op->path == NULL || op->path == hr_self.path));
}

bool hr__count_reentered(const struct hr_ring_hdr *ring, enum hr_op_id id, int fd, hr_file file)
{
	const struct hr_op op = {.id = (uint16_t)id, .fd = fd, .file = file};

	if (ring == NULL)
		return hr__reentered(&op, hr_self.bare_op, hr_self.bare_fd, hr_self.bare_file);
	return hr__reentered(&op, ring->inflight.op, ring->inflight.fd, ring->inflight.file);
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * kernel.h - sums of the operations that the kernel saw (docs/probes.md)
 *
 * The engine keeps them until the next KernelRecords frame, the probe feed until the next KERNEL
 * entry. Drain thread. Rows with equal (proc, file, op, cause) are added up; readers of the store
 * also add them up.
 */
#ifndef HEADRACE_DAEMON_ENGINE_KERNEL_H
#define HEADRACE_DAEMON_ENGINE_KERNEL_H

#include <stdint.h>

#include "common/map64.h"
#include "daemon/journal/entry.h"

struct hr_kernel_sum {
	uint64_t proc;
	/* In the engine, `file` is the stream file id (0: unknown), and by_kernel is 0. */
	struct hr_kernel_row row;
};

struct hr_kernel_sums {
	struct hr_kernel_sum *v;
	uint32_t n, room;
	struct hr_map64 by_key;
};

/* Adds a sum. Returns 0 or -ENOMEM. */
int hr_kernel_sums_add(struct hr_kernel_sums *t, const struct hr_kernel_sum *sum);
void hr_kernel_sums_clear(struct hr_kernel_sums *t);
void hr_kernel_sums_done(struct hr_kernel_sums *t);

#endif

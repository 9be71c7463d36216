/* SPDX-License-Identifier: Apache-2.0 */
/*
 * kernel.h - what the kernel has added up, until the next KernelRecords frame (docs/probes.md)
 *
 * Owner: the engine; drain thread. Rows of equal (proc, file, op, cause) add up here and again in readers.
 */
#ifndef HEADRACE_DAEMON_KERNEL_H
#define HEADRACE_DAEMON_KERNEL_H

#include <stdint.h>

#include "daemon/map64.h"

struct hr_kernel_sum {
	uint64_t proc;
	uint32_t file; /* stream file id, 0: not known */
	uint16_t op;
	uint16_t cause; /* enum hr_cause */
	uint64_t count;
	uint64_t bytes;
	uint64_t errors;
	uint64_t dur_ns;
};

struct hr_kernel_sums {
	struct hr_kernel_sum *v; /* in order of their first */
	uint32_t n, room;
	struct hr_map64 by_key; /* of key hash; `v` decides */
};

/* 0 or -ENOMEM. */
int hr_kernel_sums_add(struct hr_kernel_sums *t, const struct hr_kernel_sum *row);
void hr_kernel_sums_clear(struct hr_kernel_sums *t);
void hr_kernel_sums_done(struct hr_kernel_sums *t);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ringpool.h - maps made in advance, so that attaching does not wait for memory
 *
 * Owner: the attach thread. A map in the pool is a sealed memfd; the pages that its clients touch first are allocated.
 */
#ifndef HEADRACE_DAEMON_RINGPOOL_H
#define HEADRACE_DAEMON_RINGPOOL_H

#include <stdbool.h>
#include <stdint.h>

#include "proto/abi.h"

struct hr_ringpool {
	int fds[64];
	unsigned n;
	unsigned target;      /* maps to keep: doubled when the pool runs dry */
	uint32_t short_ticks; /* for headers */
};

void hr_ringpool_init(struct hr_ringpool *p, uint64_t short_ticks);
void hr_ringpool_done(struct hr_ringpool *p);

/* A descriptor, now the caller's, with the header written, as a client of version `abi` expects it; -errno. */
int hr_ringpool_take(struct hr_ringpool *p, uint32_t abi, uint64_t session, uint32_t index,
		     uint32_t level);

/* Makes one more map if the pool wants one; false when it is full (or memory is out). */
bool hr_ringpool_refill(struct hr_ringpool *p);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ringpool.h - maps made in advance, so that attaching does not wait for memory
 *
 * Each is a sealed, mapped memfd with the pages that clients touch first. For the attach thread.
 */
#ifndef HEADRACE_DAEMON_SESSION_RINGPOOL_H
#define HEADRACE_DAEMON_SESSION_RINGPOOL_H

#include <stdbool.h>
#include <stdint.h>

#include "daemon/session/session.h"

struct hr_ringpool {
	int fds[64];
	struct hr_map maps[64];
	unsigned n;
	unsigned target; /* maps to keep: doubled when the pool runs empty */
};

void hr_ringpool_init(struct hr_ringpool *p);
void hr_ringpool_done(struct hr_ringpool *p);

/* A descriptor and its zeroed map, for the caller, who writes the header. -errno. */
int hr_ringpool_take(struct hr_ringpool *p, struct hr_map *ret);

/* Whether less than half of the maps to keep are left. */
bool hr_ringpool_low(const struct hr_ringpool *p);

/* Makes one map, if needed; false: the pool is full, or memory is short. */
bool hr_ringpool_refill(struct hr_ringpool *p);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ringpool.h - maps made in advance, so that attaching does not wait for memory
 *
 * Owner: the attach thread. A map in the pool is a sealed, mapped memfd, with the pages allocated
 * that its clients touch first.
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

/* A descriptor and its zeroed map, both then the caller's, who writes the header. -errno. */
int hr_ringpool_take(struct hr_ringpool *p, struct hr_map *ret);

/* Whether less than half of the maps to keep are left. */
bool hr_ringpool_low(const struct hr_ringpool *p);

/* Makes one more map if the pool needs one; false when it is full (or out of memory). */
bool hr_ringpool_refill(struct hr_ringpool *p);

#endif

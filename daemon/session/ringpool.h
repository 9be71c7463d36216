/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ringpool.h - maps that are made in advance, so that an attach does not wait for memory
 *
 * A map is a sealed, mapped memfd with the pages that clients touch first. Attach thread only.
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
	unsigned target; /* number of maps to keep; it is doubled when the pool runs empty */
};

void hr_ringpool_init(struct hr_ringpool *p);
void hr_ringpool_done(struct hr_ringpool *p);

/* Returns a descriptor, with its zeroed map in *ret, or -errno. The caller owns both. */
int hr_ringpool_take(struct hr_ringpool *p, struct hr_map *ret);

/* Returns whether less than half of `target` maps are left. */
bool hr_ringpool_low(const struct hr_ringpool *p);

/* Makes one map if the pool needs one. False: the pool is full, or memory is short. */
bool hr_ringpool_refill(struct hr_ringpool *p);

#endif

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
	unsigned target; /* how many maps the pool keeps; doubled when the pool runs empty */
};

void hr_ringpool_init(struct hr_ringpool *p);
void hr_ringpool_done(struct hr_ringpool *p);

/* Returns the descriptor of a zeroed map, which is in *ret, or -errno. The caller owns both. */
int hr_ringpool_take(struct hr_ringpool *p, struct hr_map *ret);

/* Returns whether the pool has less than half of `target` maps. */
bool hr_ringpool_low(const struct hr_ringpool *p);

/* Makes one map if the pool is not full. Returns false if the pool is full, or memory is short. */
bool hr_ringpool_refill(struct hr_ringpool *p);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * node_clock.h - the offset of a node's wall clock from ours, from round trips
 *
 * Purpose   A Pong has the node's time at some moment between our Ping and the Pong's arrival. The
 *           middle of the two is the best guess, and half of the round trip bounds its error. Of
 *           the samples of the last minutes the one with the smallest error is kept.
 * Owner     One for each connection.
 * Threads   Plain data.
 */
#ifndef HEADRACE_COLLECTOR_NODE_CLOCK_H
#define HEADRACE_COLLECTOR_NODE_CLOCK_H

#include "collector/ingest.h"

#define HR_NODE_CLOCK_KEEP_NS UINT64_C(600000000000)

struct hr_node_clock_samples {
	struct hr_node_clock best;
	uint64_t taken_ns; /* our monotonic clock */
};

/*
 * `sent_ns` and `came_ns` are our wall clock, `now_ns` our monotonic one, `real_ns` the node's wall
 * clock. A sample that contradicts the kept one replaces it: a clock was set. True when `best` has
 * changed.
 */
bool hr_node_clock_add(struct hr_node_clock_samples *c, uint64_t sent_ns, uint64_t came_ns,
		       uint64_t now_ns, uint64_t real_ns);

#endif

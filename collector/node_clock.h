/* SPDX-License-Identifier: Apache-2.0 */
/*
 * node_clock.h - the offset of a node's wall clock from ours, from round trips. One per connection
 *
 * A Pong has the node's time at a moment between our Ping and its arrival. So the middle of these
 * two is the estimate, and half of the round trip the largest error. Keeps the sample with the
 * smallest error of the last minutes.
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
 * `sent_ns`, `came_ns`: our wall clock; `now_ns`: our monotonic clock; `real_ns`: the node's wall
 * clock. A sample that contradicts the best one replaces it: a clock was set. True: `best` changed.
 */
bool hr_node_clock_add(struct hr_node_clock_samples *c, uint64_t sent_ns, uint64_t came_ns,
		       uint64_t now_ns, uint64_t real_ns);

#endif

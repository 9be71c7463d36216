/* SPDX-License-Identifier: Apache-2.0 */
/*
 * node_clock.h - the offset of a node's wall clock from ours, from round trips
 *
 * A Pong contains the node's time between our Ping and the arrival of the Pong. The middle of
 * these two is the estimate; half of the round trip limits its error. The sample with the smallest
 * error of the last minutes is kept. One struct per connection.
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
 * `sent_ns` and `came_ns`: our wall clock; `now_ns`: our monotonic clock; `real_ns`: the node's.
 * If a clock was set, the new sample contradicts the kept one and replaces it. True: `best` has
 * changed.
 */
bool hr_node_clock_add(struct hr_node_clock_samples *c, uint64_t sent_ns, uint64_t came_ns,
		       uint64_t now_ns, uint64_t real_ns);

#endif

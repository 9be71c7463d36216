/* SPDX-License-Identifier: Apache-2.0 */
/*
 * node_clock.h - estimates, for each connection, how far the node's wall clock is ahead of ours
 *
 * A Pong contains the time of the node at a moment between the sending of our Ping and the arrival
 * of the Pong. The estimate assumes the middle of these two times, so its largest error is half of
 * the round trip. `best` is the sample with the smallest error of the last minutes.
 */
#ifndef HEADRACE_COLLECTOR_NODE_CLOCK_H
#define HEADRACE_COLLECTOR_NODE_CLOCK_H

#include "collector/ingest.h"

#define HR_NODE_CLOCK_KEEP_NS UINT64_C(600000000000)

struct hr_node_clock_samples {
	struct hr_node_clock best;
	uint64_t taken_ns; /* when `best` was taken, by our monotonic clock */
};

/*
 * Adds a sample. `sent_ns`, `came_ns`: our wall clock at Ping and Pong; `now_ns`: our monotonic
 * clock; `real_ns`: the node's wall clock. If a sample contradicts the best one, a clock was set:
 * the sample then replaces the best one. Returns whether `best` has changed.
 */
bool hr_node_clock_add(struct hr_node_clock_samples *c, uint64_t sent_ns, uint64_t came_ns,
		       uint64_t now_ns, uint64_t real_ns);

#endif

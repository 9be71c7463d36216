/* SPDX-License-Identifier: Apache-2.0 */
/*
 * node_clock.h - estimates how far the wall clock of a node is ahead of the collector's
 *
 * A Pong contains the time of the node. The estimate assumes that the node read its clock in the
 * middle between Ping and Pong, so the largest error is half of the round trip. `best` is the
 * sample with the smallest error in the last minutes.
 */
#ifndef HEADRACE_COLLECTOR_NODE_CLOCK_H
#define HEADRACE_COLLECTOR_NODE_CLOCK_H

#include "collector/ingest.h"

#define HR_NODE_CLOCK_KEEP_NS UINT64_C(600000000000)

struct hr_node_clock_samples {
	struct hr_node_clock best;
	uint64_t taken_ns; /* monotonic clock at `best` */
};

/*
 * Adds a sample. Wall clocks: of the collector at Ping (`sent_ns`) and Pong (`came_ns`), of the
 * node (`real_ns`); `now_ns` is monotonic. A sample that contradicts `best` replaces it, because a
 * clock was set. Returns whether `best` has changed.
 */
bool hr_node_clock_add(struct hr_node_clock_samples *c, uint64_t sent_ns, uint64_t came_ns,
		       uint64_t now_ns, uint64_t real_ns);

#endif

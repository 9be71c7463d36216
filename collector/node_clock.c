/* SPDX-License-Identifier: Apache-2.0 */
#include "collector/node_clock.h"

static uint64_t apart(int64_t a, int64_t b)
{
	return a > b ? (uint64_t)a - (uint64_t)b : (uint64_t)b - (uint64_t)a;
}

bool hr_node_clock_add(struct hr_node_clock_samples *c, uint64_t sent_ns, uint64_t came_ns,
		       uint64_t now_ns, uint64_t real_ns)
{
	struct hr_node_clock s = {.known = true};
	bool contradicts, old;

	/* the clock of the collector was set back, so the sample is useless */
	if (came_ns < sent_ns)
		return false;
	s.error_ns = (came_ns - sent_ns) / 2 + 1;
	s.offset_ns = (int64_t)(real_ns - (sent_ns + (came_ns - sent_ns) / 2));
	contradicts =
	    c->best.known && apart(s.offset_ns, c->best.offset_ns) > s.error_ns + c->best.error_ns;
	old = now_ns - c->taken_ns >= HR_NODE_CLOCK_KEEP_NS;
	if (c->best.known && !contradicts && !old && s.error_ns >= c->best.error_ns)
		return false;
	c->best = s;
	c->taken_ns = now_ns;
	return true;
}

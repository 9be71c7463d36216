/* SPDX-License-Identifier: Apache-2.0 */
/*
 * region_short.c - sums of short ranges, in shared memory
 *
 * If ranges of one microsecond had records, they would need 64 bytes per microsecond, so short
 * ranges are summed up. A sum is sent when another name needs its cell, when its first range is a
 * second old, or after the thread's death. When the process has exited, the daemon reads the
 * remaining sums.
 *
 * Threads   Only the ring's owner. A signal handler that interrupts this code sends a record per
 *           range.
 */
#include "shim/regions/region.h"

#include "shim/core/ring.h"

#define SHORT_MOST UINT64_C(10000) /* in units of short_ticks (hr_map_hdr): one second */

static void region_short_flush(struct hr_ring_hdr *ring, struct hr_region_short *s)
{
	struct hr_record head = {
	    .op = HR_CTL_REGION,
	    .start_ticks = s->start_ticks,
	    .file = s->key,
	    .offset = s->step,
	    .ret = s->epoch,
	    .fd = (int32_t)s->depth,
	    .flags = s->flags,
	    .asked = s->count,
	};

	hr_record_duration(&head, 0, s->ticks);
	if (!hr_ring_control(&head, NULL, 0))
		hr_lost_add(ring, HR_CTL_REGION, s->count, 0, s->ticks);
	/* Release: a reader of a dead thread's cell sees the sum, or its record in the ring. */
	__atomic_store_n(&s->count, 0, __ATOMIC_RELEASE);
}

static bool region_short_same(const struct hr_region_short *s, const struct hr_region_cell *c,
			      uint32_t depth)
{
	return s->key == c->key && s->depth == depth && s->step == c->step && s->epoch == c->epoch;
}

/* Returns the cell with the range's sum, or a free cell. If none is free, sends the oldest sum. */
static struct hr_region_short *region_short_find(struct hr_ring_hdr *ring,
						 const struct hr_region_cell *c, uint32_t depth)
{
	uint32_t home = (uint32_t)(c->key >> 32 ^ c->key >> 8) + depth;
	struct hr_region_short *best = NULL;

	for (uint32_t i = 0; i < HR_REGION_SHORTS; i++) {
		struct hr_region_short *s = &ring->shorts[(home + i) % HR_REGION_SHORTS];

		if (s->count == 0) {
			/* The search continues, because the range's sum may follow. */
			if (best == NULL || best->count != 0)
				best = s;
		} else if (region_short_same(s, c, depth)) {
			return s;
		} else if (best == NULL ||
			   (best->count != 0 && s->start_ticks < best->start_ticks)) {
			best = s;
		}
	}
	if (best->count != 0)
		region_short_flush(ring, best);
	return best;
}

static void region_short_add(struct hr_region_short *s, const struct hr_region_cell *c,
			     uint32_t depth, uint64_t ticks)
{
	if (s->count == 0) {
		s->key = c->key;
		s->start_ticks = c->start_ticks;
		s->step = c->step;
		s->epoch = c->epoch;
		s->ticks = 0;
		s->depth = depth;
		s->flags = c->flags;
	}
	s->ticks += ticks;
	/* Release: pairs with the daemon's acquire load after the thread's death. */
	__atomic_store_n(&s->count, s->count + 1, __ATOMIC_RELEASE);
}

bool hr__region_short(struct hr_ring_hdr *ring, const struct hr_region_cell *c, uint32_t depth,
		      uint64_t end)
{
	uint64_t most = __atomic_load_n(&hr_self.map->short_ticks, __ATOMIC_RELAXED);
	uint64_t ticks = end > c->start_ticks ? end - c->start_ticks : 0;
	struct hr_region_short *old, *sum;

	if (ticks >= most || c->key == 0 || ring->short_busy != 0)
		return false;
	ring->short_busy = 1;
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	old = &ring->shorts[ring->short_hand++ % HR_REGION_SHORTS];
	if (old->count != 0 && end - old->start_ticks > most * SHORT_MOST)
		region_short_flush(ring, old);
	sum = region_short_find(ring, c, depth);
	/* The range overlaps the sum (hr__region_passed), which cannot be longer than its time. */
	if (sum->count != 0 &&
	    (c->start_ticks < sum->start_ticks || sum->ticks + ticks > end - sum->start_ticks))
		region_short_flush(ring, sum);
	region_short_add(sum, c, depth, ticks);
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	ring->short_busy = 0;
	return true;
}

void hr__region_shorts_end_dead(struct hr_ring_hdr *ring)
{
	for (uint32_t i = 0; i < HR_REGION_SHORTS; i++)
		/* Acquire: pairs with the dead thread's release store. */
		if (__atomic_load_n(&ring->shorts[i].count, __ATOMIC_ACQUIRE) != 0)
			region_short_flush(ring, &ring->shorts[i]);
	ring->short_busy = 0;
}

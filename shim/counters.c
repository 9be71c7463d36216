/* SPDX-License-Identifier: Apache-2.0 */
/*
 * counters.c - totals of operations that no record tells of: private ones while detached, a ring's lost[]
 */
#include "shim/internal.h"

/* The bytes rule of every op, from the table itself: ops.c would bring names that the shim does not need. */
#define HR_CALL(id, ret, name, params, args, class, api, bytes_rule, ...)                          \
	[id] = HR_BYTES_##bytes_rule,
static const uint8_t bytes_rules[HR_OP_MAX] = {
#include "proto/calls.def"
};
#undef HR_CALL

uint64_t hr__counters_bytes(uint16_t op, int64_t ret, uint64_t asked, uint32_t flags)
{
	uint64_t bytes = hr_bytes_moved(bytes_rules[op % HR_OP_MAX], ret, asked, flags);

	return bytes == UINT64_MAX ? 0 : bytes;
}

/* Any thread: atomic adds. The daemon gets them with the next hello, or through a ring's lost[]. */
void hr__counters_add(uint16_t op, int64_t ret, uint64_t asked, uint32_t flags, uint64_t ticks)
{
	struct hr_lost *c = &hr__wiped.counters[op % HR_OP_MAX];

	__atomic_fetch_add(&c->count, 1, __ATOMIC_RELAXED);
	__atomic_fetch_add(&c->bytes, hr__counters_bytes(op, ret, asked, flags), __ATOMIC_RELAXED);
	__atomic_fetch_add(&c->ticks, ticks, __ATOMIC_RELAXED);
	__atomic_store_n(&hr__wiped.counting, 1, __ATOMIC_RELEASE);
}

/* Only the ring's owner and its signal handlers come here, but those can interrupt one another. */
void hr__lost_add(struct hr_ring_hdr *ring, uint16_t op, uint64_t count, uint64_t bytes,
		  uint64_t ticks)
{
	struct hr_lost *l = &ring->lost[op % HR_OP_MAX];

	__atomic_fetch_add(&l->count, count, __ATOMIC_RELAXED);
	__atomic_fetch_add(&l->bytes, bytes, __ATOMIC_RELAXED);
	__atomic_fetch_add(&l->ticks, ticks, __ATOMIC_RELAXED);
	/* Pairs with the daemon's acquire load: it looks at lost[] when the total has moved. */
	__atomic_fetch_add(&ring->lost_total, count, __ATOMIC_RELEASE);
}

/* Operations counted while this process had a session but the thread no ring: they leave through ours. */
void hr__counters_to_ring(struct hr_ring_hdr *ring)
{
	if (__atomic_exchange_n(&hr__wiped.counting, 0, __ATOMIC_ACQUIRE) == 0)
		return;
	for (unsigned op = HR_OP_FIRST; op < HR_OP_MAX; op++) {
		struct hr_lost *c = &hr__wiped.counters[op];
		uint64_t count = __atomic_exchange_n(&c->count, 0, __ATOMIC_RELAXED);

		if (count != 0)
			hr__lost_add(ring, (uint16_t)op, count,
				     __atomic_exchange_n(&c->bytes, 0, __ATOMIC_RELAXED),
				     __atomic_exchange_n(&c->ticks, 0, __ATOMIC_RELAXED));
	}
}

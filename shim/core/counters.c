/* SPDX-License-Identifier: Apache-2.0 */
/*
 * counters.c - totals of operations, regions and excluded opens without a record
 *
 * If a thread's ring was full, totals are added to lost[] of that ring. If the thread has no ring,
 * they are added to lost[] of the session's first ring. A forked child without a session adds to
 * the strays of the first map of its parent (or an ancestor). Without any session, totals stay in
 * hr_wiped until the next hello sends them. Excluded opens are counted in the head of a map, and
 * do not cause an attach.
 */
#include "shim/core/internal.h"

/* How each operation counts its bytes. The shim does not link common/ops.c. */
#define HR_KERNEL(id, name, class, api, bytes_rule) [id] = HR_BYTES_##bytes_rule,
#define HR_CALL(id, ret, name, params, args, class, api, bytes_rule, ...)                          \
	HR_KERNEL(id, name, class, api, bytes_rule)
static const uint8_t bytes_rules[HR_OP_MAX] = {
#include "proto/calls.def"
#include "proto/kernel.def"
};
#undef HR_CALL
#undef HR_KERNEL

uint64_t hr__counters_bytes(uint16_t op, int64_t ret, uint64_t asked, uint32_t flags)
{
	uint64_t bytes = hr_bytes_moved(bytes_rules[op % HR_OP_MAX], ret, asked, flags);

	return bytes == UINT64_MAX ? 0 : bytes;
}

static void counters_add(struct hr_lost *l, uint64_t count, uint64_t bytes, uint64_t ticks)
{
	__atomic_fetch_add(&l->count, count, __ATOMIC_RELAXED);
	__atomic_fetch_add(&l->bytes, bytes, __ATOMIC_RELAXED);
	__atomic_fetch_add(&l->ticks, ticks, __ATOMIC_RELAXED);
}

void hr_lost_add(struct hr_ring_hdr *ring, uint16_t op, uint64_t count, uint64_t bytes,
		 uint64_t ticks)
{
	counters_add(&ring->lost[op % HR_OP_MAX], count, bytes, ticks);
	/* Release: when the daemon's acquire load sees this count, the daemon also sees lost[]. */
	__atomic_fetch_add(&ring->lost_total, count, __ATOMIC_RELEASE);
}

/*
 * Returns the head of the first map of this session or, in a forked child, of the parent's session.
 * NULL: neither process has attached. Acquire: pairs with the release store in session_begin.
 */
static struct hr_map_hdr *head(void)
{
	return __atomic_load_n(&hr_shim_image.strays, __ATOMIC_ACQUIRE);
}

/*
 * Counts an operation in the strays of an ancestor's map, unless the ancestor's level is off. Any
 * thread of a process with the map may call this.
 */
static void stray(struct hr_map_hdr *map, uint16_t op, uint64_t bytes, uint64_t ticks)
{
	if (__atomic_load_n(&map->level, __ATOMIC_RELAXED) == HR_LEVEL_OFF)
		return;
	counters_add(&map->strays[op % HR_OP_MAX], 1, bytes, ticks);
	__atomic_fetch_add(&map->stray_total, 1, __ATOMIC_RELEASE);
}

/* Returns the session's first ring, for losses of threads without a ring. NULL: no session. */
static struct hr_ring_hdr *first_ring(void)
{
	/* Acquire: pairs with the release store of nonce, which follows the store of maps[0]. */
	if (__atomic_load_n(&hr_wiped.nonce, __ATOMIC_ACQUIRE) == 0)
		return NULL;
	return (struct hr_ring_hdr *)(hr_session_map(0) + 1);
}
_Static_assert(sizeof(struct hr_map_hdr) % HR_PAGE_BYTES == 0, "the first ring follows the head");

/*
 * Whether this process begins and ends its sessions itself, and this thread has not met the current
 * one. The thread's operation is then from before the session, and counts nowhere. After a seccomp
 * filter, no session begins, and new threads meet none.
 */
static bool from_before(void)
{
	return hr__controls_sessions() && !hr_shim_image.quiet &&
	       hr_self.nonce != __atomic_load_n(&hr_wiped.nonce, __ATOMIC_ACQUIRE);
}

static void counters_count(uint16_t op, uint64_t bytes, uint64_t ticks)
{
	struct hr_ring_hdr *ring = first_ring();
	struct hr_map_hdr *map;

	if (from_before())
		return;
	if (ring != NULL) {
		hr_lost_add(ring, op, 1, bytes, ticks);
		return;
	}
	map = head();
	if (map != NULL) {
		stray(map, op, bytes, ticks);
		return;
	}
	counters_add(&hr_wiped.counters[op % HR_OP_MAX], 1, bytes, ticks);
	/* Sequentially consistent: this thread sees the session, or the attach sees the count. */
	__atomic_store_n(&hr_wiped.counting, 1, __ATOMIC_SEQ_CST);
	if (__atomic_load_n(&hr_wiped.nonce, __ATOMIC_SEQ_CST) != 0)
		hr__counters_to_session();
}

void hr__counters_add(uint16_t op, int64_t ret, uint64_t asked, uint32_t flags, uint64_t ticks)
{
	counters_count(op, hr__counters_bytes(op, ret, asked, flags), ticks);
}

void hr_counters_region(void)
{
	struct hr_map_hdr *map = head();

	if (hr_shim_image.on &&
	    (map == NULL || __atomic_load_n(&map->level, __ATOMIC_RELAXED) != HR_LEVEL_OFF))
		counters_count(HR_CTL_REGION, 0, 0);
}

void hr__counters_to_session(void)
{
	struct hr_ring_hdr *ring = first_ring();

	if (ring == NULL || hr__controls_sessions() ||
	    __atomic_exchange_n(&hr_wiped.counting, 0, __ATOMIC_SEQ_CST) == 0)
		return;
	for (unsigned op = HR_CTL_REGION; op < HR_OP_MAX; op++) {
		struct hr_lost *c = &hr_wiped.counters[op];
		uint64_t count = __atomic_exchange_n(&c->count, 0, __ATOMIC_RELAXED);
		uint64_t bytes = __atomic_exchange_n(&c->bytes, 0, __ATOMIC_RELAXED);
		uint64_t ticks = __atomic_exchange_n(&c->ticks, 0, __ATOMIC_RELAXED);

		if ((count | bytes | ticks) != 0)
			hr_lost_add(ring, (uint16_t)op, count, bytes, ticks);
	}
}

void hr__excluded_add(uint32_t kind)
{
	struct hr_map_hdr *map = head();

	if (map != NULL) {
		if (__atomic_load_n(&map->level, __ATOMIC_RELAXED) != HR_LEVEL_OFF)
			__atomic_fetch_add(&map->excluded[kind], 1, __ATOMIC_RELAXED);
		return;
	}
	/* Sequentially consistent, as in counters_count(). */
	__atomic_fetch_add(&hr_wiped.excluded[kind], 1, __ATOMIC_SEQ_CST);
	if (__atomic_load_n(&hr_wiped.nonce, __ATOMIC_SEQ_CST) != 0)
		hr__excluded_to_session();
}

void hr__excluded_to_session(void)
{
	struct hr_map_hdr *map = head();

	if (hr__controls_sessions())
		return;
	for (unsigned kind = 0; kind < HR_EXCLUDED_KINDS; kind++) {
		uint64_t n = __atomic_exchange_n(&hr_wiped.excluded[kind], 0, __ATOMIC_SEQ_CST);

		if (n != 0)
			__atomic_fetch_add(&map->excluded[kind], n, __ATOMIC_RELAXED);
	}
}

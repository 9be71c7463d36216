/* SPDX-License-Identifier: Apache-2.0 */
/*
 * claim.c - a thread gets a ring: a free ring, a ring of a dead thread, or a ring of a further map
 *
 * The shim has no thread destructor, because user code may run after destructors, and _exit runs
 * none. A thread that needs a ring therefore checks whether the owners of the rings are alive.
 */
#include "shim/core/ring.h"

#include <errno.h>

#include "shim/core/clock.h"
#include "shim/core/sys.h"

#define SEARCH_NS UINT64_C(1000000000)
#define SKIP_OPS  16u /* calls without a ring between two readings of the clock */

/* Call it before the new owner of a ring writes: records what the dead owner left unfinished. */
static void end_dead_owner(struct hr__thread *t)
{
	struct hr_inflight cell;

	/* Acquire: pairs with the last release stores of the dead thread. */
	__atomic_load_n(&t->ring->aggregate.op, __ATOMIC_ACQUIRE);
	if (__atomic_load_n(hr__cell_word(&t->ring->inflight), __ATOMIC_ACQUIRE) != 0) {
		cell = t->ring->inflight;
		if (cell.op != 0)
			hr__ring_cut(t->ring, &cell, hr_shim_ticks());
	}
	__atomic_store_n(hr__cell_word(&t->ring->inflight), 0, __ATOMIC_RELEASE);
	hr__ring_aggregate_flush();
	hr_regions_end_dead(t->ring);
}

/* Returns the slot index below which the ring already has memory. UINT64_MAX: all slots have it. */
static uint64_t memory_for(const struct hr_ring_hdr *ring, uint32_t slots)
{
	uint64_t head = __atomic_load_n(&ring->head, __ATOMIC_RELAXED);

	if (head <= HR_RING_EARLY)
		return HR_RING_EARLY;
	return head >= slots ? UINT64_MAX : head & ~(uint64_t)(HR_RING_EARLY - 1);
}

/* Sets the fields of the thread with which hr__ring_reserve() reserves slots of this ring. */
static void claim_measure(struct hr__thread *t, struct hr_map_hdr *map, struct hr_ring_hdr *ring)
{
	t->map = map;
	t->mask = (1u << map->slots_log2) - 1;
	t->limit = 0;
	t->populate_at = memory_for(ring, t->mask + 1);
	t->gave_up_tail = UINT64_MAX;
}

static void claim_take(struct hr__thread *t, struct hr_map_hdr *map, struct hr_ring_hdr *ring,
		       int tid, bool used)
{
	struct hr_record head = {.op = HR_CTL_THREAD, .fd = tid, .offset = HR_OFFSET_NONE};

	claim_measure(t, map, ring);
	t->ring = ring;
	t->slow.why[HR__SLOW_RING] = 0;
	t->slow.why[HR__SLOW_CLOCK] = !hr__clock_is_fast();
	t->slow.why[HR__SLOW_LEVEL] = 1; /* the level was not checked yet */
	__atomic_store_n(&ring->waiting, 0, __ATOMIC_RELAXED);
	if (used)
		end_dead_owner(t);
	head.start_ticks = hr_shim_ticks();
	hr_ring_control(&head, NULL, 0);
}

/* Claims the ring if it is free or its owner has this tid. If `dead`: also if its owner is dead. */
static bool claim_one(struct hr__thread *t, struct hr_map_hdr *map, uint32_t i, int tid, bool dead)
{
	struct hr_ring_hdr *ring = hr__map_ring(map, i);
	uint32_t owner = __atomic_load_n(&ring->owner_tid, __ATOMIC_ACQUIRE);

	if (ring == __atomic_load_n(&hr_wiped.common, __ATOMIC_RELAXED))
		return false;
	if (owner != 0 && owner != (uint32_t)tid) {
		if (!dead || HR_SYS3(tgkill, hr_wiped.pid, owner, 0) != -ESRCH)
			return false;
	}
	/* Acquire: this thread sees the dead owner's stores. Release: the daemon sees the claim. */
	if (!__atomic_compare_exchange_n(&ring->owner_tid, &owner, (uint32_t)tid, false,
					 __ATOMIC_ACQ_REL, __ATOMIC_RELAXED))
		return false;
	claim_take(t, map, ring, tid, owner != 0);
	return true;
}

static bool claim_any(struct hr__thread *t, uint32_t maps, int tid, bool dead)
{
	for (uint32_t m = 0; m < maps; m++) {
		struct hr_map_hdr *map = hr_session_map(m);

		for (uint32_t i = 0; i < map->ring_count; i++)
			if (claim_one(t, map, i, tid, dead))
				return true;
	}
	return false;
}

void hr__ring_common_set(struct hr_map_hdr *map, struct hr_ring_hdr *ring)
{
	__atomic_store_n(&ring->owner_tid, (uint32_t)hr_wiped.pid, __ATOMIC_RELEASE);
	__atomic_store_n(&ring->common, 1, __ATOMIC_RELAXED);
	__atomic_store_n(&hr_wiped.common_map, map, __ATOMIC_RELAXED);
	__atomic_store_n(&hr_wiped.common, ring, __ATOMIC_RELEASE);
}

static bool set_aside(uint32_t maps)
{
	for (uint32_t m = maps; m-- > 0;) {
		struct hr_map_hdr *map = hr_session_map(m);

		for (uint32_t i = map->ring_count; i-- > 0;) {
			struct hr_ring_hdr *ring = hr__map_ring(map, i);
			uint32_t free = 0;

			if (!__atomic_compare_exchange_n(&ring->owner_tid, &free,
							 (uint32_t)hr_wiped.pid, false,
							 __ATOMIC_ACQ_REL, __ATOMIC_RELAXED))
				continue;
			hr__ring_common_set(map, ring);
			return true;
		}
	}
	return false;
}

void hr__ring_set_aside(void)
{
	uint64_t mask;
	uint32_t maps;

	if (hr_ring_current() == NULL ||
	    __atomic_load_n(&hr_wiped.common, __ATOMIC_RELAXED) != NULL)
		return;
	/* Signals are blocked as in hr_ring_find(). Two threads at once may waste one ring. */
	mask = hr__sys_signals_block();
	do
		maps = __atomic_load_n(&hr_wiped.map_count, __ATOMIC_ACQUIRE);
	while (!set_aside(maps) && hr__session_more_rings(maps));
	hr__sys_signals_restore(mask);
}

static void claim(struct hr__thread *t)
{
	uint64_t nonce = __atomic_load_n(&hr_wiped.nonce, __ATOMIC_ACQUIRE);
	int tid = hr_sys_gettid();
	struct hr_ring_hdr *common;
	uint32_t maps;

	if (nonce == 0) /* another thread has just ended the session */
		return;
	t->nonce = nonce;
	t->ring = NULL;
	t->slow.why[HR__SLOW_RING] = 1;
	t->slow.why[HR__SLOW_AGGREGATE] = 0;
	do {
		maps = __atomic_load_n(&hr_wiped.map_count, __ATOMIC_ACQUIRE);
		if (claim_any(t, maps, tid, false) || claim_any(t, maps, tid, true))
			return;
	} while (hr__session_more_rings(maps));
	common = __atomic_load_n(&hr_wiped.common, __ATOMIC_ACQUIRE);
	t->common = common != NULL;
	if (t->common)
		claim_measure(t, __atomic_load_n(&hr_wiped.common_map, __ATOMIC_RELAXED), common);
	t->tid = tid;
	t->skip = SKIP_OPS;
	t->search_ns = hr__clock_ns() + SEARCH_NS;
}

/* Whether a search is due. Searches are rare, because each makes a system call per ring. */
static bool search_due(struct hr__thread *t)
{
	if (t->skip > 0) {
		t->skip--;
		return false;
	}
	t->skip = SKIP_OPS;
	return hr__clock_ns() >= t->search_ns;
}

/* Whether a search can succeed. A process without a session calls this for each operation. */
static bool search_possible(struct hr__thread *t, enum hr__seek seek)
{
	uint64_t nonce = __atomic_load_n(&hr_wiped.nonce, __ATOMIC_ACQUIRE);

	if (!hr_shim_image.on || hr_shim_image.quiet)
		return false;
	if (nonce != 0) {
		if (t->nonce != nonce)
			return true;
		return search_due(t);
	}
	if (__atomic_load_n(&hr_shim_image.socket[0], __ATOMIC_RELAXED) == '\0')
		return false;
	switch (seek) {
	case HR__SEEK_NONE:
		return false;
	case HR__SEEK_FIRST:
		return __atomic_load_n(&hr_wiped.attempts, __ATOMIC_RELAXED) == 0 &&
		       hr__session_retry_due();
	case HR__SEEK_RETRY:
		return hr__session_retry_due();
	default:
		return true;
	}
}

/* A process may only use open descriptors, so some of these operations attach again, too. */
static enum hr__seek seek_now(struct hr__thread *t, enum hr__seek seek)
{
	bool again = seek == HR__SEEK_FIRST &&
		     __atomic_load_n(&hr_wiped.nonce, __ATOMIC_ACQUIRE) == 0 &&
		     __atomic_load_n(&hr_wiped.attempts, __ATOMIC_RELAXED) > 0 && search_due(t);

	return again ? HR__SEEK_RETRY : seek;
}

struct hr_ring_hdr *hr_ring_find(enum hr__seek seek)
{
	struct hr__thread *t = &hr_self;
	uint64_t mask;

	if (hr_ring_current() != NULL)
		return t->ring;
	seek = seek_now(t, seek);
	if (!search_possible(t, seek) || hr_in_vfork_child())
		return NULL;
	/*
	 * Blocks all signals during the attach, because a handler could need a ring itself, fork,
	 * or leave by longjmp.
	 */
	mask = hr__sys_signals_block();
	if (hr_ring_current() == NULL && hr__session_attach(seek))
		claim(t);
	hr__sys_signals_restore(mask);
	return hr_ring_current();
}

void hr__ring_last_chance(void)
{
	if (__atomic_load_n(&hr_wiped.counting, __ATOMIC_RELAXED) != 0 && !hr_shim_image.refused &&
	    __atomic_load_n(&hr_wiped.nonce, __ATOMIC_ACQUIRE) == 0)
		hr_ring_find(HR__SEEK_FORCE);
}

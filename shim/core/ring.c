/* SPDX-License-Identifier: Apache-2.0 */
/* ring.c - a thread's ring: control records, room, the doorbell, lost records, aggregates */
#include "shim/core/ring.h"

#include <errno.h>
#include <string.h>

#include "shim/core/clock.h"
#include "shim/core/sys.h"

#define NS_PER_MS     UINT64_C(1000000)
#define NEVER	      UINT64_MAX /* value of gave_up_tail and populate_at */
#define BEAT_ANY      UINT64_MAX /* value of gave_up_beat: the daemon is alive, but was too slow */
#define POPULATE_MOST 1024u

__thread struct hr__thread hr_self
    __attribute__((tls_model("initial-exec"))) = {.nonce = HR__NONCE_NEVER};

/* Rings the doorbell if the daemon sleeps. FUTEX_WAKE also works on this read-only page. */
static void ring_bell(void)
{
	/* NULL: the first map is an offer, or a signal handler forked this process */
	const struct hr_node_page *node = __atomic_load_n(&hr_wiped.node, __ATOMIC_RELAXED);

	/* Acquire: pairs with the daemon's release store before its last read of the rings. */
	if (!hr_shim_image.quiet && node != NULL &&
	    __atomic_load_n(&node->sleeping, __ATOMIC_ACQUIRE) == 1)
		hr__sys_futex_wake(&node->bell, 1, 0);
}

struct wait {
	uint64_t start_ns; /* 0: not started */
	uint64_t moved_ns; /* when tail or beat changed last */
	uint64_t tail;
	uint64_t beat;
};

/*
 * Sleeps until tail changes, for at most 1 ms. False: stop waiting, and drop the record. If the map
 * is an offer, there is no node page, and only a change of tail shows that the daemon is alive.
 */
static bool wait_step(struct hr_ring_hdr *ring, struct wait *w, uint64_t tail)
{
	const struct hr_node_page *node = __atomic_load_n(&hr_wiped.node, __ATOMIC_RELAXED);
	struct hr__thread *t = &hr_self;
	uint64_t patience = hr_shim_image.wait_ms * NS_PER_MS;
	uint64_t now, beat;

	if (hr_shim_image.on_full == HR__FULL_DROP || hr_shim_image.quiet || patience == 0 ||
	    (node == NULL && tail == 0))
		return false;
	beat = node != NULL ? __atomic_load_n(&node->beat, __ATOMIC_RELAXED) : 0;
	if (t->gave_up_tail == tail && (t->gave_up_beat == beat || t->gave_up_beat == BEAT_ANY))
		return false;
	now = hr__clock_ns();
	if (w->start_ns == 0)
		*w = (struct wait){now, now, tail, beat};
	if (w->tail != tail || w->beat != beat)
		*w = (struct wait){w->start_ns, now, tail, beat};
	if (now - w->moved_ns >= patience || now - w->start_ns >= 10 * patience) {
		t->gave_up_tail = tail;
		t->gave_up_beat = now - w->moved_ns >= patience ? beat : BEAT_ANY;
		return false;
	}
	__atomic_store_n(&ring->waiting, 1, __ATOMIC_SEQ_CST);
	if (__atomic_load_n(&ring->tail, __ATOMIC_SEQ_CST) == tail)
		hr__sys_futex_wait(&ring->tail, (uint32_t)tail, NS_PER_MS, 0);
	__atomic_store_n(&ring->waiting, 0, __ATOMIC_RELAXED);
	return true;
}

/*
 * Doubles the ring's memory, by at most POPULATE_MOST slots. One system call replaces many page
 * faults, here and in the daemon. False: no memory is left, so a write would cause SIGBUS.
 */
static bool populate(struct hr__thread *t, struct hr_ring_hdr *ring)
{
	uint64_t slots = (uint64_t)t->mask + 1, from = t->populate_at;
	uint64_t n = from < POPULATE_MOST ? from : POPULATE_MOST;
	uint8_t *at = (uint8_t *)(ring + 1) + from * HR_SLOT_BYTES;
	long r;

	n = n < slots - from ? n : slots - from;
	r = hr_shim_image.quiet ? 0 : HR_SYS3(madvise, at, n * HR_SLOT_BYTES, MADV_POPULATE_WRITE);
	if (r == -ENOMEM || r == -EFAULT)
		return false;
	/* After other errors (EINVAL before Linux 5.14), page faults allocate the memory. */
	t->populate_at = r < 0 || from + n == slots ? NEVER : from + n;
	return true;
}

/*
 * The slow part of hr__ring_reserve(). Wakes the daemon when the ring is more than half full, and
 * again after each further eighth of the ring. limit never exceeds tail + slots.
 */
bool hr__ring_room(struct hr_ring_hdr *ring, uint32_t n)
{
	struct hr__thread *t = &hr_self;
	uint64_t slots = (uint64_t)t->mask + 1;
	struct wait w = {0};

	t->slow.why[HR__SLOW_LEVEL] =
	    __atomic_load_n(&t->map->level, __ATOMIC_RELAXED) == HR_LEVEL_OFF;
	while (__atomic_load_n(&ring->head, __ATOMIC_RELAXED) + n > t->populate_at)
		if (!populate(t, ring))
			return false;
	for (;;) {
		/* Acquire: pairs with the daemon's release store after its reads of the slots. */
		uint64_t tail = __atomic_load_n(&ring->tail, __ATOMIC_ACQUIRE);
		uint64_t head = __atomic_load_n(&ring->head, __ATOMIC_RELAXED);
		uint64_t used = head - tail + n;

		if (used > slots / 2)
			ring_bell();
		if (used <= slots) {
			uint64_t next = used <= slots / 2 ? tail + slots / 2 : head + n + slots / 8;

			next = next < tail + slots ? next : tail + slots;
			t->limit = next < t->populate_at ? next : t->populate_at;
			t->gave_up_tail = NEVER;
			return true;
		}
		if (!wait_step(ring, &w, tail))
			return false;
	}
}

static uint32_t vfork_bit(void)
{
	bool child = hr_self.slow.why[HR__SLOW_VFORK] == HR__VFORK_CHILD ||
		     (hr__shared() && hr__vfork_child());

	return child ? HR_REC_VFORK : 0;
}

void hr__ring_name_thread(struct hr__place *place)
{
	struct hr_record *r = hr__ring_slot(place, 0);
	const struct hr_record head = {.op = HR_CTL_THREAD,
				       .start_ticks = hr_shim_ticks(),
				       .fd = hr_self.tid,
				       .offset = HR_OFFSET_NONE};

	memcpy(r, &head, offsetof(struct hr_record, seq));
	r->bits = 0;
	hr__ring_commit(&r->seq, place->index);
	place->index++;
}

bool hr_ring_control(const struct hr_record *head, const void *text, size_t n_text)
{
	uint32_t n = (uint32_t)((n_text + HR_TEXT_BYTES - 1) / HR_TEXT_BYTES);
	struct hr_ring_hdr *ring = hr__ring_any();
	const uint8_t *from = text;
	struct hr__place place;
	struct hr_record *r;

	if (ring == NULL || !hr__ring_reserve(ring, n + 1, &place))
		return false;
	for (uint32_t i = 1; i <= n; i++) {
		struct hr_text *slot = hr__ring_slot(&place, i);
		size_t bytes = n_text < HR_TEXT_BYTES ? n_text : HR_TEXT_BYTES;

		memcpy(slot->text, from, bytes);
		from += bytes;
		n_text -= bytes;
		hr__ring_commit(&slot->seq, place.index + i);
	}
	r = hr__ring_slot(&place, 0);
	memcpy(r, head, offsetof(struct hr_record, seq));
	r->bits = head->bits | vfork_bit();
	hr__ring_commit(&r->seq, place.index);
	return true;
}

void hr__ring_record(struct hr_op *op, uint64_t end, int64_t ret, uint32_t flags, uint32_t bits,
		     const struct hr_pair *pair)
{
	struct hr__place place;
	struct hr_record *r;

	if (hr_unlikely(!hr__ring_reserve(op->ring, pair != NULL ? 2 : 1, &place))) {
		hr_lost_add(op->ring, op->id, 1, hr__counters_bytes(op->id, ret, op->asked, flags),
			    end > op->start ? end - op->start : 0);
		return;
	}
	r = hr__ring_slot(&place, 0);
	hr__record_fill(r, op, end, ret, flags);
	if (hr_unlikely(pair != NULL)) {
		struct hr_pair *second = hr__ring_slot(&place, 1);

		memcpy(second, pair, offsetof(struct hr_pair, seq));
		second->spare4 = 0;
		hr__ring_commit(&second->seq, place.index + 1);
		bits |= HR_REC_PAIR;
	}
	r->bits = bits | hr__file_bits(op->file) | vfork_bit();
	hr__ring_commit(&r->seq, place.index);
}

void hr__ring_cut(struct hr_ring_hdr *ring, const struct hr_inflight *cell, uint64_t end)
{
	struct hr_op op = {
	    .ring = ring,
	    .id = cell->op,
	    .fd = cell->fd,
	    .start = cell->start_ticks,
	    .file = cell->file,
	    .offset = cell->offset,
	    .asked = cell->asked,
	};

	hr__ring_record(&op, end, HR_RET_NONE, cell->flags, cell->bits | HR_REC_CUT, NULL);
}

/*
 * Writes the record of the open aggregate. First marks the aggregate as closed, so that a signal
 * handler opens another one (with another gen). Clears the cell last. If the thread dies in
 * between, the daemon counts the cell, unless it has read a record with this gen.
 */
void hr__ring_aggregate_flush(void)
{
	struct hr_ring_hdr *ring = hr_ring_current();
	struct hr_record head = {0};
	struct hr_aggregate a;

	hr_self.slow.why[HR__SLOW_AGGREGATE] = 0;
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	if (ring == NULL)
		return;
	a = ring->aggregate;
	if (a.op == 0 || a.count == 0)
		return;
	head.start_ticks = a.start_ticks;
	head.file = a.file;
	head.offset = HR_OFFSET_NONE;
	head.ret = (int64_t)a.bytes;
	head.asked = a.count;
	hr_record_duration(&head, 0, a.ticks);
	head.op = a.op;
	head.fd = a.fd;
	head.flags = a.gen;
	head.bits = a.bits | HR_REC_AGGREGATE;
	if (!hr_ring_control(&head, NULL, 0))
		hr_lost_add(ring, a.op, a.count, a.bytes, a.ticks);
	if (ring->aggregate.gen == a.gen)
		__atomic_store_n(&ring->aggregate.op, 0, __ATOMIC_RELEASE);
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ring.h - the inlined part of the ring: reserve, commit, in-flight cell
 *
 * This code runs for each recorded operation, in the thread that owns the ring and in its signal
 * handlers. ring.c has the rest. The daemon reads the ring; abi.h describes the states of a ring.
 */
#ifndef HEADRACE_SHIM_CORE_RING_H
#define HEADRACE_SHIM_CORE_RING_H

#include "shim/core/internal.h"

/*
 * Read-modify-write that is atomic only against signal handlers of the same thread, which must own
 * the ring.
 *
 * Only one thread and its signal handlers write a ring's head; other threads may load it. A signal
 * handler cannot interrupt an instruction, so no lock prefix is needed, which would make the
 * instruction four times slower.
 *
 * ThreadSanitizer does not understand assembly, so with it these functions are ordinary atomics.
 */
#if defined(__x86_64__) && !defined(__SANITIZE_THREAD__)
static inline bool hr__cas_local(uint64_t *word, uint64_t *expected, uint64_t desired)
{
	bool done;

	__asm__("cmpxchgq %3, %1" : "=@ccz"(done), "+m"(*word), "+a"(*expected) : "r"(desired));
	return done;
}

static inline void hr__add_local(uint64_t *word, uint64_t n)
{
	__asm__("addq %1, %0" : "+m"(*word) : "er"(n) : "cc");
}
#else
static inline bool hr__cas_local(uint64_t *word, uint64_t *expected, uint64_t desired)
{
	return __atomic_compare_exchange_n(word, expected, desired, true, __ATOMIC_RELAXED,
					   __ATOMIC_RELAXED);
}

static inline void hr__add_local(uint64_t *word, uint64_t n)
{
	__atomic_fetch_add(word, n, __ATOMIC_RELAXED);
}
#endif

/* Prepares a write to this cache line. An x86-64 CPU without this instruction ignores it. */
static inline void hr__prefetch_write(const void *p)
{
#if defined(__x86_64__)
	__asm__ volatile("prefetchw (%0)" : : "r"(p));
#else
	__builtin_prefetch(p, 1);
#endif
}

/*
 * Reserved slots of a ring. `ring` is the ring from before the reservation: if a signal handler
 * forks and the child attaches, the child has another hr_self.ring, but the interrupted code,
 * which continues in the child, must not store to that ring. It stores to the parent's ring, which
 * is private memory in the child (fork.c).
 */
struct hr__place {
	struct hr_ring_hdr *ring;
	uint64_t index;
	uint32_t mask;
};

static inline void *hr__ring_slot(const struct hr__place *p, uint32_t i)
{
	return (uint8_t *)(p->ring + 1) + ((p->index + i) & p->mask) * HR_SLOT_BYTES;
}

/* Release: pairs with the daemon's acquire load of seq, which precedes its reads of the slot. */
static inline void hr__ring_commit(uint32_t *seq, uint64_t index)
{
	__atomic_store_n(seq, (uint32_t)(index + 1), __ATOMIC_RELEASE);
}

/* Writes the calling thread's id into the first slot, and removes that slot from the place. */
void hr__ring_name_thread(struct hr__place *place);

/*
 * Reserves n slots. The common ring needs one more slot in front, for the thread's id. No signal
 * handler can run between the check and the addition, so the ring never overflows, even if handlers
 * nest.
 */
static inline bool hr__ring_reserve(struct hr_ring_hdr *ring, uint32_t n, struct hr__place *ret)
{
	struct hr__thread *t = &hr_self;
	uint64_t head = __atomic_load_n(&ring->head, __ATOMIC_RELAXED);
	bool common = ring == __atomic_load_n(&hr_wiped.common, __ATOMIC_RELAXED);
	bool done;

	ret->ring = ring;
	ret->mask = t->mask;
	n += common;
	do {
		while (hr_unlikely(head + n > t->limit)) {
			if (!hr__ring_room(ring, n))
				return false;
			head = __atomic_load_n(&ring->head, __ATOMIC_RELAXED);
		}
		if (common || hr__shared()) /* several threads or processes write */
			done = __atomic_compare_exchange_n(&ring->head, &head, head + n, true,
							   __ATOMIC_RELAXED, __ATOMIC_RELAXED);
		else
			done = hr__cas_local(&ring->head, &head, head + n);
	} while (hr_unlikely(!done));
	ret->index = head;
	if (hr_unlikely(common))
		hr__ring_name_thread(ret);
	return true;
}

/* Stores a duration in 48 bits. A longer duration becomes the largest value. */
static inline void hr_record_duration(struct hr_record *r, uint64_t start, uint64_t end)
{
	uint64_t ticks = end > start ? end - start : 0;

	if (hr_unlikely(ticks >> 48 != 0))
		ticks = (UINT64_C(1) << 48) - 1;
	r->dur_lo = (uint32_t)ticks;
	r->dur_hi = (uint16_t)(ticks >> 32);
}

static inline void hr__record_fill(struct hr_record *r, const struct hr_op *op, uint64_t end,
				   int64_t ret, uint32_t flags)
{
	r->start_ticks = op->start;
	r->file = HR_FILE_ID(op->file);
	r->offset = op->offset;
	r->ret = ret;
	r->asked = op->asked;
	hr_record_duration(r, op->start, end);
	r->op = op->id;
	r->fd = op->fd;
	r->flags = flags;
}

static inline uint32_t hr__file_bits(hr_file file)
{
	return (uint32_t)(file & HR_FILE_RUNTIME) * HR_REC_RUNTIME +
	       (uint32_t)((file & HR_FILE_DIR) / HR_FILE_DIR) * HR_REC_DIR;
}

/*
 * The fields op and spare of the in-flight cell are one 32-bit word. One load shows whether a
 * signal handler interrupts an operation, or code that is writing a cell.
 */
#define HR__CELL_FILLING UINT32_C(0x10000) /* op is 0, so the daemon ignores the cell */
_Static_assert(offsetof(struct hr_inflight, op) % 4 == 0, "one word with spare");
_Static_assert(offsetof(struct hr_inflight, spare) == offsetof(struct hr_inflight, op) + 2,
	       "adjacent");

static inline uint32_t *hr__cell_word(struct hr_inflight *cell)
{
	return (uint32_t *)(void *)&cell->op;
}

static inline void hr__cell_write(struct hr_inflight *cell, const struct hr_inflight *from)
{
	uint32_t *word = hr__cell_word(cell);

	__atomic_store_n(word, HR__CELL_FILLING, __ATOMIC_RELAXED);
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	__atomic_store_n(&cell->start_ticks, from->start_ticks, __ATOMIC_RELAXED);
	__atomic_store_n(&cell->file, from->file, __ATOMIC_RELAXED);
	__atomic_store_n(&cell->offset, from->offset, __ATOMIC_RELAXED);
	__atomic_store_n(&cell->asked, from->asked, __ATOMIC_RELAXED);
	__atomic_store_n(&cell->fd, from->fd, __ATOMIC_RELAXED);
	__atomic_store_n(&cell->flags, from->flags, __ATOMIC_RELAXED);
	__atomic_store_n(&cell->bits, from->bits, __ATOMIC_RELAXED);
	/* Release: pairs with the daemon's acquire load of op. */
	__atomic_store_n(word, from->op | (uint32_t)from->spare << 16, __ATOMIC_RELEASE);
}

/*
 * Writes op into the cell of op->ring, and the old cell into op->outer. If the original function of
 * the operation in flight makes this call (hr__reentered), clears op->live and writes nothing.
 */
static inline void hr__cell_enter(struct hr_op *op, uint32_t bits)
{
	struct hr_inflight *cell = &op->ring->inflight;
	struct hr_inflight now = {
	    .start_ticks = op->start,
	    .file = HR_FILE_ID(op->file),
	    .offset = op->offset,
	    .asked = op->asked,
	    .fd = op->fd,
	    .bits = bits,
	    .op = op->id,
	};

	op->nested = __atomic_load_n(hr__cell_word(cell), __ATOMIC_RELAXED) != 0;
	if (hr_unlikely(op->nested)) {
		if (cell->op != HR_OP_NONE && hr__reentered(op, cell->op, cell->fd, cell->file)) {
			op->live = false;
			return;
		}
		op->outer = *cell;
		op->outer_frame = hr_self.frame;
	}
	hr_self.frame = (uintptr_t)op;
	hr__cell_write(cell, &now);
}

static inline void hr__cell_leave(struct hr_op *op)
{
	if (hr_unlikely(op->nested)) {
		hr_self.frame = op->outer_frame;
		hr__cell_write(&op->ring->inflight, &op->outer);
	} else {
		__atomic_store_n(hr__cell_word(&op->ring->inflight), 0, __ATOMIC_RELEASE);
	}
}

/* In shim/regions: ends the regions of a dead owner. Call it before the next owner writes. */
void hr_regions_end_dead(struct hr_ring_hdr *ring);

#endif

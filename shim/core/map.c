/* SPDX-License-Identifier: Apache-2.0 */
/*
 * map.c - mappings of tracked files, for calls that have only an address
 *
 * The mappings are in an array of slots without a lock. A thread claims a slot by compare-and-swap
 * of its start, which is 0 in a free slot and 1 while a thread fills it. If two threads unmap and
 * map the same range at once, either result may remain.
 */
#include "shim/core/internal.h"

#define SLOTS	4096u
#define FILLING ((uintptr_t)1)
#define PAGE	4096u /* the last page of a mapping counts in full */

struct mapping {
	uintptr_t start;
	uintptr_t end;
	hr_file file;
};

static struct mapping slots[SLOTS];
static uint32_t used; /* number of mappings in slots[]; 0: no search is needed */
static uint32_t top;  /* the slots from this index on were never used */

static void map_add(uintptr_t start, uintptr_t end, hr_file file)
{
	for (uint32_t i = 0; i < SLOTS; i++) {
		uintptr_t free = 0;
		uint32_t seen;

		if (!__atomic_compare_exchange_n(&slots[i].start, &free, FILLING, false,
						 __ATOMIC_ACQUIRE, __ATOMIC_RELAXED))
			continue;
		seen = __atomic_load_n(&top, __ATOMIC_RELAXED);
		while (seen <= i &&
		       !__atomic_compare_exchange_n(&top, &seen, i + 1, true, __ATOMIC_RELAXED,
						    __ATOMIC_RELAXED))
			;
		__atomic_store_n(&slots[i].end, end, __ATOMIC_RELAXED);
		__atomic_store_n(&slots[i].file, file, __ATOMIC_RELAXED);
		__atomic_fetch_add(&used, 1, __ATOMIC_RELAXED);
		__atomic_store_n(&slots[i].start, start, __ATOMIC_RELEASE);
		return;
	}
	/* The calls on this mapping will not be recorded. At least one follows: its munmap. */
	hr__counters_add(HR_OP_munmap, 0, HR_ASKED_NONE, 0, 0);
}

static uintptr_t map_end_of(const void *addr, uint64_t bytes)
{
	return ((uintptr_t)addr + bytes + PAGE - 1) & ~(uintptr_t)(PAGE - 1);
}

void hr_map_add(const void *addr, uint64_t bytes, hr_file file)
{
	if (hr_file_tracked(file) && addr != NULL && bytes > 0 && !hr_in_vfork_child())
		map_add((uintptr_t)addr, map_end_of(addr, bytes), file);
}

hr_file hr_map_find(const void *addr)
{
	uint32_t end = __atomic_load_n(&top, __ATOMIC_RELAXED);

	if (hr_likely(__atomic_load_n(&used, __ATOMIC_RELAXED) == 0))
		return HR_FILE_IGNORED;
	for (uint32_t i = 0; i < end; i++) {
		uintptr_t start = __atomic_load_n(&slots[i].start, __ATOMIC_ACQUIRE);

		if (start > FILLING && start <= (uintptr_t)addr &&
		    (uintptr_t)addr < __atomic_load_n(&slots[i].end, __ATOMIC_RELAXED))
			return __atomic_load_n(&slots[i].file, __ATOMIC_RELAXED);
	}
	return HR_FILE_IGNORED;
}

/* Removes the range [from, to) from a mapping, of which 0, 1 or 2 parts remain. */
static void cut(struct mapping *m, uintptr_t start, uintptr_t from, uintptr_t to)
{
	uintptr_t end = __atomic_load_n(&m->end, __ATOMIC_RELAXED);
	hr_file file = __atomic_load_n(&m->file, __ATOMIC_RELAXED);

	if (to <= start || from >= end)
		return;
	if (from > start) {
		__atomic_store_n(&m->end, from, __ATOMIC_RELAXED);
		if (to < end)
			map_add(to, end, file);
	} else if (to < end) {
		__atomic_store_n(&m->start, to, __ATOMIC_RELEASE);
	} else {
		__atomic_store_n(&m->start, 0, __ATOMIC_RELEASE);
		__atomic_fetch_sub(&used, 1, __ATOMIC_RELAXED);
	}
}

void hr_map_remove(const void *addr, uint64_t bytes)
{
	uint32_t end = __atomic_load_n(&top, __ATOMIC_RELAXED);

	if (__atomic_load_n(&used, __ATOMIC_RELAXED) == 0 || hr_in_vfork_child())
		return;
	for (uint32_t i = 0; i < end; i++) {
		uintptr_t start = __atomic_load_n(&slots[i].start, __ATOMIC_ACQUIRE);

		if (start > FILLING)
			cut(&slots[i], start, (uintptr_t)addr, map_end_of(addr, bytes));
	}
}

void hr_begin_map(struct hr_op *op, enum hr_op_id id, const void *addr, uint64_t asked)
{
	hr_begin_file(op, id, hr_map_find(addr), -1, asked, HR_OFFSET_NONE);
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * items.h - sums of operations by file
 *
 * A map has the files of one stream, and belongs to one thread. Maps of several threads are merged.
 */
#ifndef HEADRACE_QUERY_DIAGNOSIS_ITEMS_H
#define HEADRACE_QUERY_DIAGNOSIS_ITEMS_H

#include <stddef.h>
#include <stdint.h>

struct hr_item {
	uint32_t stream, file; /* as for hr_stream_file() */
	/*
	 * Operations of fetches. `examined`: operations other than read, write, open, close and
	 * seek.
	 */
	uint32_t opens, reads, empty_reads, examined;
	uint64_t bytes;
	uint64_t extent;      /* end of the farthest read; 0: unknown */
	uint64_t read_ns;     /* time of reads in fetches */
	uint64_t metadata_ns; /* time of other operations in fetches */
	/* The part of read_ns and metadata_ns during which a training thread waited. */
	uint64_t waited_ns;
	/* Time of training threads outside fetches, and its part in fsync and similar calls. */
	uint64_t own_ns, own_sync_ns;
	uint64_t own_syncs;    /* number of these calls */
	uint64_t mapped_bytes; /* bytes that workers and training threads mapped */
};

struct hr_items {
	struct hr_item *list; /* in the order of their first use */
	size_t n, room;
	/* An open hash table. `place` is a position in the list plus 1; 0: the slot is free. */
	struct hr_item_slot {
		uint32_t file, place;
	} * slots;
	size_t n_slots;
	size_t last; /* the position that hr__item returned last */
};

/* Returns the entry of a file, and adds it if there is none. NULL: out of memory. */
struct hr_item *hr__item(struct hr_items *items, uint32_t stream, uint32_t file);

/*
 * Loads into the CPU's cache what hr__item() will read: first the slot of a file, later its entry.
 */
void hr__item_prefetch_slot(const struct hr_items *items, uint32_t file);
void hr__item_prefetch(const struct hr_items *items, uint32_t file);

/* Adds the entries of `from`, which is empty afterwards. -ENOMEM. */
int hr__items_merge(struct hr_items *to, struct hr_items *from);

/* Sorts the list by file. Entries can no longer be added. */
void hr__items_end(struct hr_items *items);
void hr__items_done(struct hr_items *items);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * items.h - the operations on each file, added up
 *
 * A struct hr_items has the files of one stream, and belongs to one thread. Those of several
 * threads are merged.
 */
#ifndef HEADRACE_QUERY_DIAGNOSIS_ITEMS_H
#define HEADRACE_QUERY_DIAGNOSIS_ITEMS_H

#include <stddef.h>
#include <stdint.h>

struct hr_item {
	uint32_t stream, file;
	/* Operations in fetches. `examined`: all but read, write, open, close and seek. */
	uint32_t opens, reads, empty_reads, examined;
	uint64_t bytes;
	uint64_t extent;      /* highest offset that a read reached; 0: unknown */
	uint64_t read_ns;     /* time of reads in fetches */
	uint64_t metadata_ns; /* time of other operations in fetches */
	/* The part of read_ns and metadata_ns in which a training thread waited. */
	uint64_t waited_ns;
	/* Operations of training threads outside fetches, and their part in fsync etc. */
	uint64_t own_ns, own_sync_ns;
	uint64_t own_syncs;    /* number of fsync and similar calls */
	uint64_t mapped_bytes; /* bytes that workers and training threads mapped */
};

struct hr_items {
	struct hr_item *list; /* in the order of first use, until hr__items_end sorts it by file */
	size_t n, room;
	/* A hash table. `place` is an index in the list plus 1; 0: the slot is free. */
	struct hr_item_slot {
		uint32_t file, place;
	} * slots;
	size_t n_slots;
	size_t last; /* index of the element that hr__item returned last */
};

/* Returns the element of a file, and adds the element if there is none. NULL: out of memory. */
struct hr_item *hr__item(struct hr_items *items, uint32_t stream, uint32_t file);

/* Load into the CPU's cache what hr__item() reads: first the slot, in a later call the element. */
void hr__item_prefetch_slot(const struct hr_items *items, uint32_t file);
void hr__item_prefetch(const struct hr_items *items, uint32_t file);

/* Adds all elements of `from` to `to`, and empties `from`. -ENOMEM. */
int hr__items_merge(struct hr_items *to, struct hr_items *from);

/* Sorts the list by file. No elements can be added after this call. */
void hr__items_end(struct hr_items *items);
void hr__items_done(struct hr_items *items);

#endif

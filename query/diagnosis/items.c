/* SPDX-License-Identifier: Apache-2.0 */
#include "query/diagnosis/items.h"

#include <errno.h>
#include <stdlib.h>

#include "common/array.h"

#define SLOTS_MIN 1024u

static size_t first_slot(const struct hr_items *items, uint32_t file)
{
	uint64_t hash = file * UINT64_C(0x9e3779b97f4a7c15);

	return (size_t)(hash >> 20) & (items->n_slots - 1);
}

void hr__item_prefetch_slot(const struct hr_items *items, uint32_t file)
{
	if (items->n > 0)
		__builtin_prefetch(&items->slots[first_slot(items, file)]);
}

void hr__item_prefetch(const struct hr_items *items, uint32_t file)
{
	const struct hr_item_slot *slot;

	if (items->n == 0)
		return;
	slot = &items->slots[first_slot(items, file)];
	if (slot->place == 0 || slot->file != file)
		return;
	__builtin_prefetch(&items->list[slot->place - 1]);
	__builtin_prefetch(&items->list[slot->place - 1].own_sync_ns);
}

static struct hr_item_slot *slot_of(const struct hr_items *items, uint32_t file)
{
	size_t at = first_slot(items, file);

	while (items->slots[at].place != 0 && items->slots[at].file != file)
		at = (at + 1) & (items->n_slots - 1);
	return &items->slots[at];
}

static int grow(struct hr_items *items)
{
	size_t n = items->n_slots > 0 ? 2 * items->n_slots : SLOTS_MIN;
	struct hr_item_slot *slots = calloc(n, sizeof(*slots));

	if (slots == NULL)
		return -ENOMEM;
	free(items->slots);
	items->slots = slots;
	items->n_slots = n;
	for (size_t i = 0; i < items->n; i++)
		*slot_of(items, items->list[i].file) =
		    (struct hr_item_slot){items->list[i].file, (uint32_t)i + 1};
	return 0;
}

static struct hr_item *add(struct hr_items *items, uint32_t stream, uint32_t file)
{
	if ((2 * items->n >= items->n_slots && grow(items) < 0) ||
	    !hr_array_reserve(items->list, items->n, items->room))
		return NULL;
	items->list[items->n] = (struct hr_item){.stream = stream, .file = file};
	items->last = items->n++;
	*slot_of(items, file) = (struct hr_item_slot){file, (uint32_t)items->n};
	return &items->list[items->last];
}

struct hr_item *hr__item(struct hr_items *items, uint32_t stream, uint32_t file)
{
	uint32_t place;

	if (items->n > 0 && items->list[items->last].file == file)
		return &items->list[items->last];
	place = items->n > 0 ? slot_of(items, file)->place : 0;
	if (place == 0)
		return add(items, stream, file);
	items->last = place - 1;
	return &items->list[items->last];
}

int hr__items_merge(struct hr_items *to, struct hr_items *from)
{
	if (to->n == 0) {
		hr__items_done(to);
		*to = *from;
		*from = (struct hr_items){0};
		return 0;
	}
	for (size_t i = 0; i < from->n; i++) {
		const struct hr_item *f = &from->list[i];
		struct hr_item *t = hr__item(to, f->stream, f->file);

		if (t == NULL)
			return -ENOMEM;
		t->opens += f->opens;
		t->reads += f->reads;
		t->empty_reads += f->empty_reads;
		t->bytes += f->bytes;
		t->examined += f->examined;
		t->extent = f->extent > t->extent ? f->extent : t->extent;
		t->read_ns += f->read_ns;
		t->metadata_ns += f->metadata_ns;
		t->waited_ns += f->waited_ns;
		t->own_ns += f->own_ns;
		t->own_sync_ns += f->own_sync_ns;
		t->own_syncs += f->own_syncs;
		t->mapped_bytes += f->mapped_bytes;
	}
	hr__items_done(from);
	return 0;
}

static int by_file(const void *a, const void *b)
{
	const struct hr_item *x = a, *y = b;

	return (x->file > y->file) - (x->file < y->file);
}

void hr__items_end(struct hr_items *items)
{
	free(items->slots);
	items->slots = NULL;
	items->n_slots = 0;
	if (items->n > 0)
		qsort(items->list, items->n, sizeof(*items->list), by_file);
}

void hr__items_done(struct hr_items *items)
{
	free(items->list);
	free(items->slots);
	*items = (struct hr_items){0};
}

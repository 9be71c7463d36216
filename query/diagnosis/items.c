/* SPDX-License-Identifier: Apache-2.0 */
#include "query/diagnosis/items.h"

#include <errno.h>
#include <stdlib.h>

#define ROOM_MIN 1024u

static struct hr_item *entry_of(const struct hr_items *items, uint32_t stream, uint32_t file)
{
	uint64_t hash = ((uint64_t)stream << 32 | file) * UINT64_C(0x9e3779b97f4a7c15);
	size_t at = (size_t)(hash >> 20) & (items->room - 1);

	while (items->list[at].file != 0 &&
	       (items->list[at].file != file || items->list[at].stream != stream))
		at = (at + 1) & (items->room - 1);
	return &items->list[at];
}

static int grow(struct hr_items *items)
{
	struct hr_items larger = {.n = items->n,
				  .room = items->room > 0 ? 2 * items->room : ROOM_MIN};

	larger.list = calloc(larger.room, sizeof(*larger.list));
	if (larger.list == NULL)
		return -ENOMEM;
	for (size_t i = 0; i < items->room; i++)
		if (items->list[i].file != 0)
			*entry_of(&larger, items->list[i].stream, items->list[i].file) =
			    items->list[i];
	free(items->list);
	*items = larger;
	return 0;
}

struct hr_item *hr__item(struct hr_items *items, uint32_t stream, uint32_t file)
{
	struct hr_item *item;

	if (2 * items->n >= items->room && grow(items) < 0)
		return NULL;
	item = entry_of(items, stream, file);
	if (item->file == 0) {
		item->stream = stream;
		item->file = file;
		items->n++;
	}
	return item;
}

int hr__items_merge(struct hr_items *to, const struct hr_items *from)
{
	for (size_t i = 0; i < from->room; i++) {
		const struct hr_item *f = &from->list[i];
		struct hr_item *t;

		if (f->file == 0)
			continue;
		t = hr__item(to, f->stream, f->file);
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
	}
	return 0;
}

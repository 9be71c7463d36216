/* SPDX-License-Identifier: Apache-2.0 */
#include "common/arena.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* The first block is small: a catalogue has several arenas for each of many small streams. */
#define FIRST_BLOCK_BYTES 1024u
#define BLOCK_BYTES	  65536u
#define ALIGNMENT	  16u

struct hr_arena_block {
	struct hr_arena_block *previous;
	size_t used, room;
	_Alignas(ALIGNMENT) uint8_t data[];
};

void *hr_arena_get(struct hr_arena *a, size_t bytes)
{
	struct hr_arena_block *b = a->last;
	size_t need = (bytes + ALIGNMENT - 1) & ~(size_t)(ALIGNMENT - 1);
	void *piece;

	if (!b || b->room - b->used < need) {
		size_t room = b ? 2 * b->room : FIRST_BLOCK_BYTES;

		room = room < BLOCK_BYTES ? room : BLOCK_BYTES;
		room = room > need ? room : need;
		b = malloc(sizeof(*b) + room);
		if (!b) {
			a->failed = true;
			return NULL;
		}
		*b = (struct hr_arena_block){.previous = a->last, .room = room};
		a->last = b;
	}
	piece = b->data + b->used;
	b->used += need;
	a->bytes += need;
	return piece;
}

void *hr_arena_alloc(struct hr_arena *a, size_t bytes)
{
	void *piece = hr_arena_get(a, bytes);

	return piece ? memset(piece, 0, bytes) : NULL;
}

void *hr_arena_copy(struct hr_arena *a, const void *data, size_t bytes)
{
	void *piece = hr_arena_get(a, bytes);

	if (piece && bytes > 0)
		memcpy(piece, data, bytes);
	return piece;
}

char *hr_arena_text(struct hr_arena *a, const char *text)
{
	return hr_arena_copy(a, text, strlen(text) + 1);
}

void hr_arena_free(struct hr_arena *a)
{
	while (a->last) {
		struct hr_arena_block *previous = a->last->previous;

		free(a->last);
		a->last = previous;
	}
	*a = (struct hr_arena){0};
}

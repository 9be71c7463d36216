/* SPDX-License-Identifier: Apache-2.0 */
#include "store/arena.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* A catalogue of many small streams has some arenas for each: blocks start small and double. */
#define FIRST_BLOCK_BYTES 1024u
#define BLOCK_BYTES	  65536u
#define ALIGNMENT	  16u
#define FIRST_ARRAY_BYTES 256u

struct hr__arena_block {
	struct hr__arena_block *previous;
	size_t used, room;
	_Alignas(ALIGNMENT) uint8_t data[];
};

void *hr__arena_get(struct hr__arena *a, size_t bytes)
{
	struct hr__arena_block *b = a->last;
	size_t need = (bytes + ALIGNMENT - 1) & ~(size_t)(ALIGNMENT - 1);
	void *ret;

	if (!b || b->room - b->used < need) {
		size_t room = b ? 2 * b->room : FIRST_BLOCK_BYTES;

		room = room < BLOCK_BYTES ? room : BLOCK_BYTES;
		room = room > need ? room : need;
		b = malloc(sizeof(*b) + room);
		if (!b)
			return NULL;
		*b = (struct hr__arena_block){.previous = a->last, .room = room};
		a->last = b;
	}
	ret = b->data + b->used;
	b->used += need;
	return ret;
}

void *hr__arena_copy(struct hr__arena *a, const void *data, size_t bytes)
{
	void *ret = hr__arena_get(a, bytes);

	if (ret && bytes > 0)
		memcpy(ret, data, bytes);
	return ret;
}

char *hr__arena_text(struct hr__arena *a, const char *text)
{
	return hr__arena_copy(a, text, strlen(text) + 1);
}

void hr__arena_done(struct hr__arena *a)
{
	while (a->last) {
		struct hr__arena_block *previous = a->last->previous;

		free(a->last);
		a->last = previous;
	}
}

int hr__reserve(void *array, size_t need, size_t *room, size_t size)
{
	void *old, *grown;
	size_t n = *room ? *room * 2 : FIRST_ARRAY_BYTES / size;

	if (need <= *room)
		return 0;
	if (n < need)
		n = need;
	memcpy(&old, array, sizeof(old)); /* `array` is a pointer to some T * */
	grown = reallocarray(old, n, size);
	if (!grown)
		return -ENOMEM;
	memcpy(array, &grown, sizeof(grown));
	*room = n;
	return 0;
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * arena.h - memory that is given back all at once: one frame's messages, the texts of one flush
 *
 * Owner: the embedding structure; one thread at a time. Zeroed memory is an empty arena. Allocations are zeroed,
 * aligned to 16 bytes, and NULL when memory is out (`failed` stays set until reset).
 */
#ifndef HEADRACE_DAEMON_BASE_ARENA_H
#define HEADRACE_DAEMON_BASE_ARENA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#define HR_ARENA_CHUNK 16384u

struct hr_arena_chunk {
	struct hr_arena_chunk *next;
	size_t used;
	size_t bytes;
	_Alignas(16) unsigned char data[];
};

struct hr_arena {
	struct hr_arena_chunk *chunks; /* the one in use first */
	size_t bytes;		       /* handed out */
	bool failed;
};

static inline void *hr_arena_alloc(struct hr_arena *a, size_t bytes)
{
	struct hr_arena_chunk *c = a->chunks;
	size_t room = (bytes + 15) & ~(size_t)15;
	void *p;

	if (!c || c->bytes - c->used < room) {
		size_t size = room > HR_ARENA_CHUNK ? room : HR_ARENA_CHUNK;

		c = malloc(sizeof(*c) + size);
		if (!c) {
			a->failed = true;
			return NULL;
		}
		*c = (struct hr_arena_chunk){.next = a->chunks, .bytes = size};
		a->chunks = c;
	}
	p = c->data + c->used;
	c->used += room;
	a->bytes += room;
	return memset(p, 0, room);
}

static inline void *hr_arena_copy(struct hr_arena *a, const void *data, size_t bytes)
{
	void *p = hr_arena_alloc(a, bytes ? bytes : 1);

	if (p && bytes)
		memcpy(p, data, bytes);
	return p;
}

static inline char *hr_arena_text(struct hr_arena *a, const char *text)
{
	return hr_arena_copy(a, text, strlen(text) + 1);
}

static inline void hr_arena_reset(struct hr_arena *a)
{
	while (a->chunks) {
		struct hr_arena_chunk *next = a->chunks->next;

		free(a->chunks);
		a->chunks = next;
	}
	a->bytes = 0;
	a->failed = false;
}

#endif

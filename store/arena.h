/* SPDX-License-Identifier: Apache-2.0 */
/*
 * arena.h - small pieces of memory that live and die together
 *
 * Embedded in its owner; zero is a valid empty arena. Not thread-safe.
 */
#ifndef HEADRACE_STORE_ARENA_H
#define HEADRACE_STORE_ARENA_H

#include <stddef.h>
#include <stdint.h>

struct hr__arena_block;

struct hr__arena {
	struct hr__arena_block *last;
};

/* Uninitialised, aligned to 16 bytes; NULL when memory is short. */
void *hr__arena_get(struct hr__arena *a, size_t bytes);
void *hr__arena_copy(struct hr__arena *a, const void *data, size_t bytes);
char *hr__arena_text(struct hr__arena *a, const char *text);
void hr__arena_done(struct hr__arena *a);

/*
 * Makes room for `need` elements of `size` bytes in an array that grows at least by doubling
 * (realloc): `array` points to the pointer, *room is how many it holds. -ENOMEM leaves it as it
 * was.
 */
int hr__reserve(void *array, size_t need, size_t *room, size_t size);

/* The same for one more than `count`. */
static inline int hr__grow(void *array, size_t count, size_t *room, size_t size)
{
	return hr__reserve(array, count + 1, room, size);
}

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * arena.h - small pieces of memory that are freed together
 *
 * Owner     The structure that contains the arena; one thread at a time. Zeroed memory is an empty
 *           arena.
 * Errors    Without memory, a piece is NULL, and `failed` stays set until the arena is freed.
 *
 * Pieces are aligned to 16 bytes.
 */
#ifndef HEADRACE_COMMON_ARENA_H
#define HEADRACE_COMMON_ARENA_H

#include <stdbool.h>
#include <stddef.h>

struct hr_arena_block;

struct hr_arena {
	struct hr_arena_block *last;
	size_t bytes;
	bool failed;
};

void *hr_arena_get(struct hr_arena *a, size_t bytes);	/* not initialized */
void *hr_arena_alloc(struct hr_arena *a, size_t bytes); /* zeroed */
void *hr_arena_copy(struct hr_arena *a, const void *data, size_t bytes);
char *hr_arena_text(struct hr_arena *a, const char *text);

void hr_arena_free(struct hr_arena *a); /* frees all pieces; the arena is empty again */

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * map64.h - hash map from 64-bit keys to 32-bit indexes
 *
 * Open addressing with linear probing, at most half full; deletion shifts entries back. Zeroed
 * memory is an empty map. The order of iteration is undefined, so no data in the store may depend
 * on it (replay in engine.h). A map belongs to the structure that contains it, and to one thread.
 */
#ifndef HEADRACE_COMMON_MAP64_H
#define HEADRACE_COMMON_MAP64_H

#include <errno.h>
#include <stdint.h>
#include <string.h>

#include "common/bigmem.h"

#define HR_MAP64_NONE UINT32_MAX

struct hr_map64_cell {
	uint64_t key;
	uint32_t value; /* HR_MAP64_NONE: the cell is empty */
	uint32_t spare;
};

struct hr_map64 {
	struct hr_map64_cell *cells;
	uint32_t mask;
	uint32_t used;
};

static inline uint64_t hr_mix64(uint64_t x)
{
	x ^= x >> 32;
	x *= UINT64_C(0x9e3779b97f4a7c15);
	return x ^ (x >> 29);
}

static inline uint32_t hr_map64_get(const struct hr_map64 *m, uint64_t key)
{
	if (!m->cells)
		return HR_MAP64_NONE;
	for (uint32_t i = (uint32_t)hr_mix64(key) & m->mask;; i = (i + 1) & m->mask) {
		const struct hr_map64_cell *c = &m->cells[i];

		if (c->value == HR_MAP64_NONE || c->key == key)
			return c->value;
	}
}

static inline void hr_map64_prefetch(const struct hr_map64 *m, uint64_t key)
{
	if (m->cells)
		__builtin_prefetch(&m->cells[(uint32_t)hr_mix64(key) & m->mask]);
}

static inline void hr__map64_place(struct hr_map64 *m, uint64_t key, uint32_t value)
{
	uint32_t i = (uint32_t)hr_mix64(key) & m->mask;

	while (m->cells[i].value != HR_MAP64_NONE && m->cells[i].key != key)
		i = (i + 1) & m->mask;
	m->used += m->cells[i].value == HR_MAP64_NONE;
	m->cells[i].key = key;
	m->cells[i].value = value;
}

static inline int hr__map64_grow(struct hr_map64 *m)
{
	struct hr_map64 bigger = {.mask = m->cells ? m->mask * 2 + 1 : 15};
	size_t bytes = ((size_t)bigger.mask + 1) * sizeof(*bigger.cells);

	bigger.cells = hr_big_alloc(bytes);
	if (!bigger.cells)
		return -ENOMEM;
	memset(bigger.cells, 0xff, bytes);
	for (uint64_t i = 0; m->cells && i <= m->mask; i++)
		if (m->cells[i].value != HR_MAP64_NONE)
			hr__map64_place(&bigger, m->cells[i].key, m->cells[i].value);
	free(m->cells);
	*m = bigger;
	return 0;
}

/* Adds the key, or replaces its value. Returns 0 or -ENOMEM. */
static inline int hr_map64_set(struct hr_map64 *m, uint64_t key, uint32_t value)
{
	if (!m->cells || m->used * 2 > m->mask) {
		int r = hr__map64_grow(m);

		if (r)
			return r;
	}
	hr__map64_place(m, key, value);
	return 0;
}

static inline void hr_map64_remove(struct hr_map64 *m, uint64_t key)
{
	uint32_t hole, i;

	if (hr_map64_get(m, key) == HR_MAP64_NONE)
		return;
	for (hole = (uint32_t)hr_mix64(key) & m->mask; m->cells[hole].key != key;)
		hole = (hole + 1) & m->mask;
	m->used--;
	for (i = (hole + 1) & m->mask; m->cells[i].value != HR_MAP64_NONE; i = (i + 1) & m->mask) {
		uint32_t home = (uint32_t)hr_mix64(m->cells[i].key) & m->mask;

		/* Entry i may move into the hole, unless its search starts after the hole. */
		if (((i - home) & m->mask) < ((i - hole) & m->mask))
			continue;
		m->cells[hole] = m->cells[i];
		hole = i;
	}
	m->cells[hole].value = HR_MAP64_NONE;
}

static inline void hr_map64_done(struct hr_map64 *m)
{
	free(m->cells);
	*m = (struct hr_map64){0};
}

#endif

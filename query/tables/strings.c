/* SPDX-License-Identifier: Apache-2.0 */
#include "query/tables/internal.h"

#include "common/text.h"

void hr_pool_init(struct hr_pool *p)
{
	pthread_mutex_init(&p->lock, NULL);
	p->arena = (struct hr_arena){0};
}

void hr_pool_done(struct hr_pool *p)
{
	hr_arena_free(&p->arena);
	pthread_mutex_destroy(&p->lock);
}

void *hr_pool_get(struct hr_pool *p, size_t bytes)
{
	void *memory;

	pthread_mutex_lock(&p->lock);
	memory = hr_arena_get(&p->arena, bytes);
	pthread_mutex_unlock(&p->lock);
	return memory;
}

static bool plain(const unsigned char *text, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		if (text[i] < 0x20 || text[i] > 0x7e || text[i] == '\\')
			return false;
	}
	return true;
}

duckdb_string_t hr_string_of(struct hr_pool *pool, const void *bytes, size_t n)
{
	size_t size = 4 * n + 1;
	char *copy;

	if (plain(bytes, n))
		return hr_string(bytes, n);
	copy = hr_pool_get(pool, size);
	if (copy == NULL)
		return hr_string("", 0);
	return hr_string(copy, hr_text_escape(copy, size, bytes, n));
}

duckdb_string_t hr__string_copy(struct hr_pool *pool, const char *text)
{
	size_t n = text != NULL ? strlen(text) : 0;
	char *copy = hr_pool_get(pool, n + 1);

	if (copy == NULL || n == 0)
		return hr_string("", 0);
	memcpy(copy, text, n + 1);
	return hr_string_of(pool, copy, n);
}

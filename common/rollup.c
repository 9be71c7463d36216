/* SPDX-License-Identifier: Apache-2.0 */
#include "common/rollup.h"

#include "common/array.h"

/* Returns the hash of a key. If another key has this hash, the caller tries the next hash. */
static uint64_t rollup_key(uint64_t window, uint64_t proc, uint16_t op, uint16_t mount,
			   uint16_t scope)
{
	return hr_mix64(window ^ hr_mix64(proc)) ^
	       hr_mix64((uint64_t)op << 32 | (uint32_t)mount << 1 | (scope & 1));
}

static bool row_is(const struct hr_rollup *r, uint64_t window, uint64_t proc, uint16_t op,
		   uint16_t mount, uint16_t scope)
{
	return r->window == window && r->proc == proc && r->op == op && r->mount == mount &&
	       r->scope == scope;
}

static struct hr_rollup *rollup_add(struct hr_rollups *t)
{
	if (!hr_array_reserve(t->v, t->n, t->room))
		return NULL;
	memset(&t->v[t->n], 0, sizeof(*t->v));
	return &t->v[t->n];
}

struct hr_rollup *hr__rollup_find(struct hr_rollups *t, uint64_t window, uint64_t proc, uint16_t op,
				  uint16_t mount, uint16_t scope, uint32_t *cached)
{
	uint64_t k = rollup_key(window, proc, op, mount, scope);
	struct hr_rollup *r;
	uint32_t i;

	for (;; k++) {
		i = hr_map64_get(&t->by_key, k);
		if (i == HR_MAP64_NONE)
			break;
		if (row_is(&t->v[i], window, proc, op, mount, scope)) {
			*cached = i;
			return &t->v[i];
		}
	}
	r = rollup_add(t);
	if (!r || hr_map64_set(&t->by_key, k, t->n))
		return NULL;
	r->window = window;
	r->proc = proc;
	r->op = op;
	r->mount = mount;
	r->scope = scope;
	if (t->n == 0 || window < t->oldest)
		t->oldest = window;
	*cached = t->n++;
	return r;
}

void hr_rollups_drop(struct hr_rollups *t, uint64_t window)
{
	uint32_t kept = 0;

	hr_map64_done(&t->by_key);
	t->oldest = UINT64_MAX;
	for (uint32_t i = 0; i < t->n; i++) {
		struct hr_rollup *r = &t->v[i];
		uint64_t k = rollup_key(r->window, r->proc, r->op, r->mount, r->scope);

		if (r->window <= window)
			continue;
		while (hr_map64_get(&t->by_key, k) != HR_MAP64_NONE)
			k++;
		if (hr_map64_set(&t->by_key, k, kept))
			continue;
		if (r->window < t->oldest)
			t->oldest = r->window;
		if (kept != i)
			t->v[kept] = *r;
		kept++;
	}
	t->n = kept;
}

void hr_rollups_done(struct hr_rollups *t)
{
	free(t->v);
	hr_map64_done(&t->by_key);
	*t = (struct hr_rollups){0};
}

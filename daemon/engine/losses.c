/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/engine/losses.h"

#include "common/array.h"

static uint64_t sum(uint64_t a, uint64_t b)
{
	return a + b < a ? UINT64_MAX : a + b;
}

_Static_assert(HR_LOSS_REASONS <= 64, "six bits of the key");

/* Returns a key. Keys are unique for op ids below 512 and process numbers below 2^49. */
static uint64_t losses_key(const struct hr_loss *l)
{
	return l->proc << 15 | (uint64_t)l->reason << 9 | (l->op & 511);
}

void hr_losses_add(struct hr_losses *l, const struct hr_loss *row)
{
	uint32_t i = hr_map64_get(&l->by_key, losses_key(row));

	if (i == HR_MAP64_NONE) {
		if (!hr_array_reserve(l->v, l->n, l->room))
			return;
		if (hr_map64_set(&l->by_key, losses_key(row), l->n))
			return;
		l->v[l->n++] = *row;
		return;
	}
	l->v[i].count = sum(l->v[i].count, row->count);
	l->v[i].bytes = sum(l->v[i].bytes, row->bytes);
	l->v[i].dur_ns = sum(l->v[i].dur_ns, row->dur_ns);
}

void hr_losses_clear(struct hr_losses *l)
{
	l->n = 0;
	hr_map64_done(&l->by_key);
}

void hr_losses_done(struct hr_losses *l)
{
	free(l->v);
	hr_map64_done(&l->by_key);
	*l = (struct hr_losses){0};
}

/* SPDX-License-Identifier: Apache-2.0 */
/* The longest wait of each training process. */
#include "query/diagnosis/diagnosis.h"

#include <errno.h>
#include <stdlib.h>

#include "query/tables/each.h"

/* ---- the longest wait ---- */

static int find_longest(void *data, size_t i)
{
	struct hr_diagnosis *d = data;
	const struct hr_train_life *life = &d->lives.list[i];
	struct hr_longest_wait *longest = &d->longest[i];

	for (size_t k = 0; k < life->n; k++) {
		const struct hr_block *b = &life->blocks[k];
		const struct hr_wait *whole = hr_block_costs(b) ? hr_block_wait(life, b) : NULL;
		struct hr_longest_wait wait = {whole != NULL ? whole->from : b->from,
					       whole != NULL ? whole->to : b->to};

		if (hr_block_costs(b) && hr_longest_ns(&wait) > hr_longest_ns(longest))
			*longest = wait;
	}
	return 0;
}

int hr__longest_waits_find(struct hr_diagnosis *d)
{
	d->longest = calloc(d->lives.n + 1, sizeof(*d->longest));
	if (d->longest == NULL)
		return -ENOMEM;
	return hr_each(d->q->threads, d->lives.n, find_longest, d);
}

const struct hr_train_life *hr__longest_waiter(const struct hr_diagnosis *d, uint32_t job)
{
	const struct hr_longest_wait *most = NULL;

	for (size_t i = 0; i < d->lives.n; i++) {
		const struct hr_longest_wait *l = &d->longest[i];
		int64_t more = hr_longest_ns(l) - (most != NULL ? hr_longest_ns(most) : 0);

		if (d->jobs[d->lives.list[i].stream] != job)
			continue;
		if (more > 0 || (more == 0 && most != NULL && l->from < most->from))
			most = l;
	}
	return most != NULL ? &d->lives.list[most - d->longest] : NULL;
}

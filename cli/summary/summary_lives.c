/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/summary/summary_lives.h"

#include <errno.h>
#include <stdlib.h>

#include "common/array.h"

int hr_lives_add(struct hr_lives *lives, const struct hr_life *life)
{
	if (!hr_array_reserve(lives->list, lives->n, lives->room))
		return -ENOMEM;
	lives->list[lives->n++] = *life;
	return 0;
}

static int by_part(const struct hr_life *x, int rank, int worker)
{
	if (x->rank != rank)
		return x->rank < rank ? -1 : 1;
	return x->worker < worker ? -1 : x->worker > worker;
}

static int by_part_and_start(const void *a, const void *b)
{
	const struct hr_life *x = a, *y = b;
	int r = by_part(x, y->rank, y->worker);

	return r != 0 ? r : x->start_ns < y->start_ns ? -1 : x->start_ns > y->start_ns;
}

/* Returns the time in which at least one of the n processes was alive. They are sorted by start. */
static uint64_t summary_lives_length(const struct hr_life *list, size_t n, uint64_t now_ns)
{
	uint64_t sum = 0, until = 0;

	for (size_t i = 0; i < n; i++) {
		uint64_t start = list[i].start_ns > until ? list[i].start_ns : until;
		uint64_t end = list[i].end_ns != 0 ? list[i].end_ns : now_ns;

		if (end <= start)
			continue;
		sum += end - start;
		until = end;
	}
	return sum;
}

void hr_lives_sum(struct hr_lives *lives, uint64_t now_ns, struct hr_summary_who *who, size_t n)
{
	size_t at = 0;

	if (lives->n > 0)
		qsort(lives->list, lives->n, sizeof(*lives->list), by_part_and_start);
	while (at < lives->n) {
		const struct hr_life *first = &lives->list[at];
		size_t same = 1;

		while (at + same < lives->n &&
		       by_part(&lives->list[at + same], first->rank, first->worker) == 0)
			same++;
		for (size_t i = 0; i < n; i++)
			if (who[i].rank == first->rank && who[i].worker == first->worker)
				who[i].life_ns = summary_lives_length(first, same, now_ns);
		at += same;
	}
}

void hr_lives_done(struct hr_lives *lives)
{
	free(lives->list);
	*lives = (struct hr_lives){0};
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "query/diagnosis/wait_rows.h"

#include <errno.h>
#include <stdlib.h>

#include "common/array.h"
#include "query/diagnosis/each.h"
#include "query/diagnosis/parts_internal.h"

static bool costs(const struct hr_block *b)
{
	return b->kind >= HR_BLOCK_FETCH && b->kind <= HR_BLOCK_UNKNOWN;
}

/* Returns the wait that contains the block; NULL: its wait began within another wait. */
static const struct hr_wait *wait_of(const struct hr_loop *l, const struct hr_block *b)
{
	size_t n = hr_array_search(i, l->n, l->waits[i].from <= b->from);

	return n > 0 && b->from < l->waits[n - 1].to ? &l->waits[n - 1] : NULL;
}

/* Returns when the wait that contains the block began and ended. */
static struct hr_longest_wait whole_wait(const struct hr_train_life *life, const struct hr_block *b)
{
	const struct hr_wait *wait =
	    b->loop != HR_NO_LOOP ? wait_of(&life->loops[b->loop], b) : NULL;

	return wait != NULL ? (struct hr_longest_wait){wait->from, wait->to}
			    : (struct hr_longest_wait){b->from, b->to};
}

static void find_maker(const struct hr_diagnosis *d, struct hr_wait_row *row)
{
	uint32_t worker;

	if (row->piece->kind == HR_BLOCK_UNKNOWN) {
		row->maker = row->life->proc;
		row->maker_tid = row->life->tid;
	}
	if (row->piece->kind != HR_BLOCK_FETCH)
		return;
	worker = d->lives.fetches[row->piece->fetch].worker;
	row->maker = worker != HR_NO_FETCH ? d->lives.workers[worker].proc : row->life->proc;
	row->maker_tid = worker != HR_NO_FETCH ? d->lives.workers[worker].tid : row->life->tid;
}

static int add_piece(const struct hr_diagnosis *d, const struct hr_train_life *life,
		     const struct hr_block *b, struct hr_wait_rows *to)
{
	const struct hr_wait *wait =
	    b->loop != HR_NO_LOOP ? wait_of(&life->loops[b->loop], b) : NULL;
	struct hr_wait_row row = {.life = life,
				  .piece = b,
				  .from = wait != NULL ? wait->from : b->from,
				  .to = wait != NULL ? wait->to : b->to,
				  .batch = wait != NULL ? wait->batch : UINT64_MAX};
	double parts[HR_PART_END] = {0};
	uint64_t ns[HR_PART_END];

	find_maker(d, &row);
	hr__block_parts(d, b, INT64_MIN, parts);
	hr__whole_ns(parts, (uint64_t)(b->to - b->from), ns);
	for (unsigned part = 0; part < HR_PART_END; part++) {
		if (ns[part] == 0)
			continue;
		if (!hr_array_reserve(to->rows, to->n, to->room))
			return -ENOMEM;
		row.part = (uint8_t)part;
		row.ns = ns[part];
		to->rows[to->n++] = row;
	}
	return 0;
}

static int add_pieces(const struct hr_diagnosis *d, const struct hr_train_life *life,
		      struct hr_longest_wait within, struct hr_wait_rows *to)
{
	int r = 0;

	for (size_t k = 0; r == 0 && k < life->n; k++) {
		const struct hr_block *b = &life->blocks[k];

		if ((costs(b) || b->kind == HR_BLOCK_HIDDEN) && b->from >= within.from &&
		    b->to <= within.to)
			r = add_piece(d, life, b, to);
	}
	return r;
}

int hr_wait_rows_make(const struct hr_diagnosis *d, struct hr_wait_rows *ret)
{
	int r = 0;

	for (size_t i = 0; r == 0 && i < d->lives.n; i++)
		r = add_pieces(d, &d->lives.list[i], (struct hr_longest_wait){INT64_MIN, INT64_MAX},
			       ret);
	return r;
}

int hr_wait_rows_longest(const struct hr_diagnosis *d, struct hr_wait_rows *ret)
{
	int r = 0;

	for (uint32_t job = 0; r == 0 && job < d->n_jobs; job++) {
		const struct hr_train_life *life = hr__longest_waiter(d, job);

		if (life != NULL)
			r = add_pieces(d, life, d->longest[life - d->lives.list], ret);
	}
	return r;
}

/* ---- the longest wait ---- */

static int find_longest(void *data, size_t i)
{
	struct hr_diagnosis *d = data;
	const struct hr_train_life *life = &d->lives.list[i];
	struct hr_longest_wait *longest = &d->longest[i];

	for (size_t k = 0; k < life->n; k++) {
		struct hr_longest_wait wait;

		if (!costs(&life->blocks[k]))
			continue;
		wait = whole_wait(life, &life->blocks[k]);
		if (hr_longest_ns(&wait) > hr_longest_ns(longest))
			*longest = wait;
	}
	return 0;
}

int hr__longest_waits_find(struct hr_diagnosis *d)
{
	d->longest = calloc(d->lives.n + 1, sizeof(*d->longest));
	if (d->longest == NULL)
		return -ENOMEM;
	return hr__each(d->q->threads, d->lives.n, find_longest, d);
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

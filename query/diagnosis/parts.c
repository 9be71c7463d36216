/* SPDX-License-Identifier: Apache-2.0 */
#include "query/diagnosis/parts_internal.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "query/tables/each.h"

/* Adds up the blocks of one step (or of one phase outside steps), and passes the sums to `put`. */
struct maker {
	const struct hr_diagnosis *d;
	hr_parts_put *put;
	void *data;
	double ns[HR_PART_END];
	const struct hr_block *first; /* the first block that is added up; NULL: none */
	size_t added;		      /* index of the next element of life->added */
	/* time of the training thread's operations since page faults were last added */
	double own;
	const struct hr_cycles *cycles;
	/* the cycle (stalls.h) of the last step that has one; NULL: none */
	const struct hr_cycle *cycle;
	double stall; /* the part of this cycle's stall that no part contains yet */
};

/* Moves at most `ns` from part `from` to part `to`. Returns how much less than `ns` it moved. */
static double take(struct maker *m, enum hr_part from, enum hr_part to, double ns)
{
	double some = m->ns[from] < ns ? m->ns[from] : ns;

	m->ns[from] -= some;
	m->ns[to] += some;
	return ns - some;
}

static void put_added(struct maker *m, const struct hr_train_life *life, int64_t end)
{
	for (; m->added < life->n_added && life->added[m->added].at < end; m->added++) {
		const struct hr_added *a = &life->added[m->added];
		bool faults = a->kind == HR_BLOCK_GAP;
		enum hr_part part = faults ? HR_PART_OWN_FAULT : hr__whole_part(a->kind);
		double ns = (double)a->ns - (faults ? m->own : 0), most = (double)a->most;

		if (faults)
			m->own = 0;
		ns = take(m, HR_PART_COMPUTE, part, ns < 0 ? 0 : ns < most ? ns : most);
		(void)take(m, HR_PART_OTHER, part, ns);
	}
}

/*
 * Moves the stall of a step from backward() and collectives to HR_PART_STALL. If these have too
 * little time, moves the rest from computing.
 */
static void put_stall(struct maker *m)
{
	const struct hr_cycle *cycle =
	    m->first->step != HR_REGION_UNKNOWN ? hr_cycle_of(m->cycles, m->first->step) : NULL;

	if (cycle == NULL)
		return;
	if (cycle != m->cycle)
		m->stall = cycle->stall;
	m->cycle = cycle;
	m->stall = take(m, HR_PART_BACKWARD, HR_PART_STALL, m->stall);
	m->stall = take(m, HR_PART_COLLECTIVE, HR_PART_STALL, m->stall);
	m->stall = take(m, HR_PART_COMPUTE, HR_PART_STALL, m->stall);
}

/* Passes the sums of the blocks from m->first until `end` to m->put. */
static int flush(struct maker *m, const struct hr_train_life *life, int64_t end)
{
	const struct hr_block *first = m->first;
	uint64_t ns[HR_PART_END];

	if (first == NULL)
		return 0;
	for (unsigned part = HR_PART_OWN_READ; part <= HR_PART_OWN_SYNC; part++)
		m->own += m->ns[part];
	put_added(m, life, end);
	put_stall(m);
	hr__whole_ns(m->ns, (uint64_t)(end - first->from), ns);
	memset(m->ns, 0, sizeof(m->ns));
	m->first = NULL;
	return m->put(m->data, life, first, ns);
}

static int64_t end_of_imports(const struct maker *m, const struct hr_train_life *life)
{
	int64_t end = INT64_MIN;

	for (size_t i = 0; i < life->n && life->blocks[i].phase == HR_PHASE_START; i++) {
		int64_t runtime = m->d->ops[life->blocks[i].ops].runtime_end;

		if (runtime != 0 && runtime > end)
			end = runtime;
	}
	return end;
}

int hr__parts_each(const struct hr_diagnosis *d, size_t number, hr_parts_put *put, void *data)
{
	const struct hr_train_life *life = &d->lives.list[number];
	struct maker m = {.d = d, .put = put, .data = data, .cycles = &d->cycles[number]};
	int64_t imported = end_of_imports(&m, life);
	int r = 0;

	for (size_t i = 0; r == 0 && i < life->n; i++) {
		const struct hr_block *b = &life->blocks[i];

		if (m.first != NULL && (m.first->step != b->step || m.first->epoch != b->epoch ||
					m.first->phase != b->phase || m.first->loop != b->loop))
			r = flush(&m, life, b->from);
		if (m.first == NULL)
			m.first = b;
		hr__block_parts(d, b, imported, m.ns);
	}
	return r < 0 ? r : flush(&m, life, life->to);
}

static int add_sums(void *data, const struct hr_train_life *life, const struct hr_block *first,
		    const uint64_t ns[HR_PART_END])
{
	struct hr_part_sums *to = data;

	(void)life;
	for (unsigned part = 0; part < HR_PART_END; part++)
		to->ns[first->phase][part] += ns[part];
	return 0;
}

static int sum_life(void *data, size_t i)
{
	const struct hr_diagnosis *d = data;

	return hr__parts_each(d, i, add_sums, &d->sums[i]);
}

int hr__sums_make(struct hr_diagnosis *d)
{
	d->sums = calloc(d->lives.n + 1, sizeof(*d->sums));
	if (d->sums == NULL)
		return -ENOMEM;
	return hr_each(d->q->threads, d->lives.n, sum_life, d);
}

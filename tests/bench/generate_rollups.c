/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/bench/generate_rollups.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define WINDOW_NS UINT64_C(10000000000)
#define BINS	  64u

struct sums {
	uint32_t mount; /* a task of the generated job uses an op on one mount only */
	uint64_t count, bytes, errors, dur_ns, max_dur_ns;
	uint64_t sizes[BINS], durations[BINS];
};

struct hr_gen_rollups {
	size_t n_sums; /* HR_OP_MAX of each task */
	struct sums *sums;
	uint64_t window; /* number of the open one, from boot */
	size_t room;	 /* rows that the message's memory holds */
	Headrace__Rollup *rows;
	Headrace__Rollup **list;
	uint64_t (*hists)[2][2 * BINS];
};

int hr_gen_rollups_new(size_t n_tasks, struct hr_gen_rollups **ret)
{
	struct hr_gen_rollups *r = calloc(1, sizeof(*r));

	if (!r)
		return -ENOMEM;
	r->n_sums = n_tasks * HR_OP_MAX;
	r->sums = calloc(r->n_sums, sizeof(*r->sums));
	if (!r->sums) {
		free(r);
		return -ENOMEM;
	}
	*ret = r;
	return 0;
}

void hr_gen_rollups_free(struct hr_gen_rollups *r)
{
	if (!r)
		return;
	free(r->sums);
	free(r->rows);
	free(r->list);
	free(r->hists);
	free(r);
}

static uint64_t window_of(const struct hr_event *e)
{
	return (e->start_ns + e->dur_ns) / WINDOW_NS;
}

bool hr_gen_rollups_full(const struct hr_gen_rollups *r, const struct hr_event *e)
{
	return window_of(e) > r->window;
}

static unsigned bin(uint64_t value)
{
	return value < 2 ? 0 : 63u - (unsigned)__builtin_clzll(value);
}

void hr_gen_rollups_add(struct hr_gen_rollups *r, const struct hr_event *e, uint32_t mount)
{
	struct sums *s = &r->sums[e->task * HR_OP_MAX + e->op];
	uint64_t bytes = hr_event_bytes(e->op, e->ret, e->asked, e->flags);

	r->window = window_of(e);
	s->mount = mount;
	s->count++;
	s->errors += e->ret < 0;
	s->dur_ns += e->dur_ns;
	s->max_dur_ns = e->dur_ns > s->max_dur_ns ? e->dur_ns : s->max_dur_ns;
	s->durations[bin(e->dur_ns)]++;
	if (bytes == UINT64_MAX)
		return;
	s->bytes += bytes;
	s->sizes[bin(bytes)]++;
}

static int reserve(struct hr_gen_rollups *r, size_t rows)
{
	if (rows <= r->room)
		return 0;
	free(r->rows);
	free(r->list);
	free(r->hists);
	r->rows = calloc(rows, sizeof(*r->rows));
	r->list = calloc(rows, sizeof(*r->list));
	r->hists = calloc(rows, sizeof(*r->hists));
	r->room = r->rows && r->list && r->hists ? rows : 0;
	return r->room ? 0 : -ENOMEM;
}

/* Pairs of bin and count. Returns how many numbers that are. */
static size_t sparse(const uint64_t *bins, uint64_t *to)
{
	size_t n = 0;

	for (unsigned i = 0; i < BINS; i++) {
		if (bins[i] == 0)
			continue;
		to[n++] = i;
		to[n++] = bins[i];
	}
	return n;
}

static void fill(Headrace__Rollup *row, uint64_t proc, uint32_t op, const struct sums *s,
		 uint64_t hists[2][2 * BINS])
{
	headrace__rollup__init(row);
	row->proc = proc;
	row->op = op;
	row->mount = s->mount;
	row->count = s->count;
	row->bytes = s->bytes;
	row->errors = s->errors;
	row->dur_ns = s->dur_ns;
	row->max_dur_ns = s->max_dur_ns;
	row->size_hist = hists[0];
	row->n_size_hist = sparse(s->sizes, hists[0]);
	row->dur_hist = hists[1];
	row->n_dur_hist = sparse(s->durations, hists[1]);
}

int hr_gen_rollups_take(struct hr_gen_rollups *r, Headrace__RollupBatch *ret)
{
	size_t n = 0;

	for (size_t i = 0; i < r->n_sums; i++)
		n += r->sums[i].count > 0;
	if (reserve(r, n) < 0)
		return -ENOMEM;
	headrace__rollup_batch__init(ret);
	ret->window_start_ns = r->window * WINDOW_NS;
	ret->window_ns = WINDOW_NS;
	ret->rows = r->list;
	for (size_t i = 0; i < r->n_sums; i++) {
		size_t row = ret->n_rows;

		if (r->sums[i].count == 0)
			continue;
		fill(&r->rows[row], i / HR_OP_MAX + 1, (uint32_t)(i % HR_OP_MAX), &r->sums[i],
		     r->hists[row]);
		r->list[row] = &r->rows[row];
		ret->n_rows++;
	}
	memset(r->sums, 0, r->n_sums * sizeof(*r->sums));
	return 0;
}

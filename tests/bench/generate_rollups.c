/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/bench/generate_rollups.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define WINDOW_NS UINT64_C(10000000000)
#define BINS	  64u
#define MOUNTS	  4u  /* ids below this */
#define OPS	  32u /* that a generated job uses */

struct sums {
	uint64_t count, bytes, errors, dur_ns, max_dur_ns;
	uint64_t sizes[BINS], durations[BINS];
};

struct hr_gen_rollups {
	size_t n_sums;
	struct sums *sums;	  /* by task, mount, op */
	uint8_t place[HR_OP_MAX]; /* of an op among those in use, + 1 */
	uint16_t ops[OPS];
	unsigned n_ops;
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
	r->n_sums = n_tasks * MOUNTS * OPS;
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

static struct sums *find(struct hr_gen_rollups *r, uint32_t task, uint32_t mount, uint16_t op)
{
	if (r->place[op] == 0) {
		if (r->n_ops == OPS || mount >= MOUNTS)
			abort(); /* sized for what the generators do */
		r->ops[r->n_ops++] = op;
		r->place[op] = (uint8_t)r->n_ops;
	}
	return &r->sums[(task * MOUNTS + mount) * OPS + r->place[op] - 1];
}

void hr_gen_rollups_add(struct hr_gen_rollups *r, const struct hr_event *e, uint32_t mount)
{
	struct sums *s = find(r, e->task, mount, e->op);
	uint64_t bytes = hr_bytes_moved(hr_op_info(e->op)->bytes_rule, e->ret, e->asked, e->flags);

	r->window = window_of(e);
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

static void fill(const struct hr_gen_rollups *r, size_t i, Headrace__Rollup *row,
		 uint64_t hists[2][2 * BINS])
{
	const struct sums *s = &r->sums[i];

	headrace__rollup__init(row);
	row->proc = i / (MOUNTS * OPS) + 1;
	row->op = r->ops[i % OPS];
	row->mount = i / OPS % MOUNTS;
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
		fill(r, i, &r->rows[row], r->hists[row]);
		r->list[row] = &r->rows[row];
		ret->n_rows++;
	}
	memset(r->sums, 0, r->n_sums * sizeof(*r->sums));
	return 0;
}

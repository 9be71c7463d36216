/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The module HEATMAP: bytes of each rank over time, in at most 200 bins. Bins are as wide as those
 * of Darshan: 0.1 s, doubled until the job fits.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/array.h"
#include "export/darshan/darshan_internal.h"

const char *const hr__darshan_heat_names[] = {"heatmap:POSIX", "heatmap:STDIO"};

static struct hr__darshan_heat_row *heat_row(struct hr__darshan_heat *h, int32_t rank,
					     enum hr__darshan_group group)
{
	uint64_t key = (uint64_t)(uint32_t)rank << 1 | group;
	uint32_t i = hr_map64_get(&h->by_key, key);
	struct hr__darshan_heat_row *row;

	if (i != HR_MAP64_NONE)
		return h->rows[i];
	row = hr_array_reserve(h->rows, h->n, h->room) ? calloc(1, sizeof(*row)) : NULL;
	if (row == NULL || hr_map64_set(&h->by_key, key, (uint32_t)h->n) < 0) {
		free(row);
		return NULL;
	}
	row->rank = rank;
	row->group = group;
	h->rows[h->n++] = row;
	return row;
}

/* Doubles the width of the bins. */
static void heat_double(struct hr__darshan_heat *h)
{
	const size_t half = HR__DARSHAN_BINS / 2;

	h->bin_ns *= 2;
	for (size_t i = 0; i < h->n; i++) {
		for (unsigned way = 0; way < HR__DARSHAN_WAYS; way++) {
			int64_t *bins = h->rows[i]->bytes[way];

			for (size_t k = 0; k < half; k++)
				bins[k] = bins[2 * k] + bins[2 * k + 1];
			memset(bins + half, 0, half * sizeof(*bins));
		}
	}
}

static void heat_reach(struct hr__darshan_heat *h, int64_t end_ns)
{
	if (h->bin_ns == 0)
		h->bin_ns = HR__DARSHAN_BIN_NS;
	while (end_ns > h->bin_ns * HR__DARSHAN_BINS && h->bin_ns < INT64_MAX / 1024)
		heat_double(h);
}

int hr__darshan_heat_add(struct hr__darshan *d, const struct hr__darshan_op *o,
			 enum hr__darshan_group group, enum hr__darshan_way way)
{
	struct hr__darshan_heat *h = &d->heat;
	int64_t left = (int64_t)o->bytes, dur_ns = o->end_ns - o->start_ns, at_ns = o->start_ns;
	struct hr__darshan_heat_row *row;

	if (left == 0)
		return 0;
	heat_reach(h, o->end_ns);
	row = heat_row(h, hr__darshan_rank(o->process), group);
	if (row == NULL)
		return -ENOMEM;
	/* Each bin gets the share of its time, and the last bin gets the rest. */
	for (;;) {
		size_t bin = (size_t)(at_ns / h->bin_ns);
		int64_t next_ns = ((int64_t)bin + 1) * h->bin_ns, part;

		if (next_ns >= o->end_ns || bin + 1 >= HR__DARSHAN_BINS) {
			row->bytes[way][bin < HR__DARSHAN_BINS ? bin : HR__DARSHAN_BINS - 1] +=
			    left;
			return 0;
		}
		part = (int64_t)((double)o->bytes * (double)(next_ns - at_ns) / (double)dur_ns);
		part = part < left ? part : left;
		row->bytes[way][bin] += part;
		left -= part;
		at_ns = next_ns;
	}
}

static int by_rank(const void *a, const void *b)
{
	const struct hr__darshan_heat_row *x = *(struct hr__darshan_heat_row *const *)a;
	const struct hr__darshan_heat_row *y = *(struct hr__darshan_heat_row *const *)b;

	if (x->rank != y->rank)
		return x->rank < y->rank ? -1 : 1;
	return (int)x->group - (int)y->group;
}

int hr__darshan_heat_write(struct hr__darshan *d)
{
	struct hr__darshan_heat *h = &d->heat;
	int64_t bins;
	int r = 0;

	hr_darshan_region_start(&d->log);
	heat_reach(h, d->end_ns);
	bins = (d->end_ns + h->bin_ns - 1) / h->bin_ns;
	bins = bins < 1 ? 1 : bins < HR__DARSHAN_BINS ? bins : HR__DARSHAN_BINS;
	if (h->n > 1)
		qsort(h->rows, h->n, sizeof(struct hr__darshan_heat_row *), by_rank);
	for (size_t i = 0; i < h->n && r == 0; i++) {
		const struct hr__darshan_heat_row *row = h->rows[i];
		const char *name = hr__darshan_heat_names[row->group];
		struct hr_darshan_heat head = {.id = hr_darshan_id(name, strlen(name)),
					       .rank = row->rank,
					       .bin_s = (double)h->bin_ns / 1e9,
					       .bins = bins};
		size_t bytes = (size_t)bins * sizeof(int64_t);

		r = hr_darshan_put(&d->log, &head, sizeof(head));
		for (unsigned way = 0; way < HR__DARSHAN_WAYS && r == 0; way++)
			r = hr_darshan_put(&d->log, row->bytes[way], bytes);
	}
	return r == 0
		   ? hr_darshan_module_end(&d->log, HR_DARSHAN_HEATMAP, HR_DARSHAN_HEATMAP_VERSION)
		   : r;
}

void hr__darshan_heat_done(struct hr__darshan *d)
{
	for (size_t i = 0; i < d->heat.n; i++)
		free(d->heat.rows[i]);
	free(d->heat.rows);
	hr_map64_done(&d->heat.by_key);
}

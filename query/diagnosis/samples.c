/* SPDX-License-Identifier: Apache-2.0 */
#include "query/diagnosis/samples.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "common/array.h"
#include "proto/abi.h"
#include "query/tables/internal.h"

#define SAMPLES_MAX ((size_t)1 << 16)
#define SLOT_SHIFT  28 /* a slot is 0.27 s */

/* Bins by the number of operations under way: 1, 2, 3 to 4, 5 to 8... */
#define BINS	  8u
#define BIN_LEAST 2u /* a bin with fewer operations does not count */

static bool is_kept(const struct hr_samples *s, int64_t from)
{
	return (((uint64_t)from >> SLOT_SHIFT) & ((UINT64_C(1) << s->halved) - 1)) == 0;
}

static void halve(struct hr_samples *s)
{
	size_t n = 0;

	s->halved++;
	for (size_t i = 0; i < s->n; i++)
		if (is_kept(s, s->list[i].from))
			s->list[n++] = s->list[i];
	s->n = n;
}

int hr__samples_add(struct hr_samples *s, const struct hr_sample *sample)
{
	if (!is_kept(s, sample->from))
		return 0;
	if (!hr_array_reserve(s->list, s->n, s->room))
		return -ENOMEM;
	s->list[s->n++] = *sample;
	while (s->n >= SAMPLES_MAX && s->halved < 32)
		halve(s);
	return 0;
}

int hr__samples_merge(struct hr_samples *to, const struct hr_samples *from)
{
	int r = 0;

	while (to->halved < from->halved)
		halve(to);
	for (size_t i = 0; r == 0 && i < from->n; i++)
		r = hr__samples_add(to, &from->list[i]);
	return r;
}

/* ---- the samples of a mount ---- */

static int by_mount_and_time(const void *a, const void *b)
{
	const struct hr_sample *x = a, *y = b;

	if (x->stream != y->stream)
		return x->stream < y->stream ? -1 : 1;
	if (x->file != y->file)
		return x->file < y->file ? -1 : 1;
	return (x->from > y->from) - (x->from < y->from);
}

static int by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

/* Sorted moments, and the sums of the first ones. */
struct moments {
	double *list, *sums;
	size_t n;
};

/* -ENOMEM. The caller frees `list`. */
static int moments_init(struct moments *m, size_t n)
{
	m->list = malloc(2 * n * sizeof(*m->list));
	m->sums = m->list != NULL ? m->list + n : NULL;
	m->n = n;
	return m->list != NULL ? 0 : -ENOMEM;
}

static void moments_sort(struct moments *m)
{
	double sum = 0;

	qsort(m->list, m->n, sizeof(*m->list), by_value);
	for (size_t i = 0; i < m->n; i++)
		m->sums[i] = sum += m->list[i];
}

/* How many moments are not later than `time`. */
static size_t moments_until(const struct moments *m, double time)
{
	size_t low = 0, high = m->n;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (m->list[middle] <= time)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

/* For all moments before `time` together, how long ago they were. */
static double moments_ago(const struct moments *m, double time)
{
	size_t n = moments_until(m, time);

	return n > 0 ? time * (double)n - m->sums[n - 1] : 0;
}

/* The mean number of operations under way between two moments. */
static double under_way(const struct moments *starts, const struct moments *ends, double from,
			double to)
{
	double all = moments_ago(starts, to) - moments_ago(starts, from);
	double ended = moments_ago(ends, to) - moments_ago(ends, from);

	return to > from ? fmax(1, (all - ended) / (to - from)) : 1;
}

struct bin {
	double *ns; /* durations */
	size_t n, room;
	double begun; /* sum */
};

static unsigned bin_of(double begun)
{
	unsigned bin = (unsigned)ceil(log2(begun));

	return bin < BINS ? bin : BINS - 1;
}

/* The slope of the bins' medians; false: fewer than two bins. */
static bool fit(struct bin *bins, double *ret)
{
	double n = 0, sx = 0, sy = 0, sxx = 0, sxy = 0;
	unsigned used = 0;

	for (unsigned i = 0; i < BINS; i++) {
		double x, y, weight = sqrt((double)bins[i].n);

		if (bins[i].n < BIN_LEAST)
			continue;
		qsort(bins[i].ns, bins[i].n, sizeof(*bins[i].ns), by_value);
		x = log(bins[i].begun / (double)bins[i].n);
		y = log(fmax(1, bins[i].ns[bins[i].n / 2]));
		n += weight;
		sx += weight * x;
		sy += weight * y;
		sxx += weight * x * x;
		sxy += weight * x * y;
		used++;
	}
	if (used < 2)
		return false;
	*ret = fmin(1, fmax(0, (n * sxy - sx * sy) / (n * sxx - sx * sx)));
	return true;
}

/* Adds an operation, at whose beginning `begun` ones were under way, itself included. -ENOMEM. */
static int add_to_bin(struct bin *bins, const struct hr_sample *sample, double begun)
{
	struct bin *b = &bins[bin_of(begun)];

	if (!hr_array_reserve(b->ns, b->n, b->room))
		return -ENOMEM;
	b->ns[b->n++] = (double)(sample->to - sample->from);
	b->begun += begun;
	return 0;
}

/* Different operations take differently long, so that only one of them is compared. */
static void choose(const struct hr_sample *list, size_t n, struct hr_load *l)
{
	double seconds[HR_OP_MAX] = {0};

	for (size_t i = 0; i < n; i++) {
		double s = (double)(list[i].to - list[i].from) / 1e9;

		l->total_s += s;
		if (list[i].op == 0)
			continue;
		seconds[list[i].op] += s;
		if (seconds[list[i].op] > seconds[l->op])
			l->op = list[i].op;
	}
}

/* Fills *l from the samples, which are of one mount and by time. -ENOMEM. */
static int measure(const struct hr_sample *list, size_t n, struct hr_load *l)
{
	struct moments starts = {0}, ends = {0};
	struct bin bins[BINS] = {0};
	size_t chosen = 0;
	int r = moments_init(&starts, n) < 0 || moments_init(&ends, n) < 0 ? -ENOMEM : 0;

	for (size_t i = 0; r == 0 && i < n; i++) {
		starts.list[i] = (double)(list[i].from - list[0].from);
		ends.list[i] = (double)(list[i].to - list[0].from);
	}
	if (r == 0) {
		moments_sort(&starts);
		moments_sort(&ends);
		choose(list, n, l);
	}
	for (size_t i = 0; r == 0 && i < n; i++) {
		double from = (double)(list[i].from - list[0].from);
		double to = (double)(list[i].to - list[0].from);

		if (list[i].op == 0 || list[i].op != l->op)
			continue;
		/* Storage that is saturated serves those first that began earlier. */
		r = add_to_bin(bins, &list[i],
			       fmax(1, (double)(i + 1) - (double)moments_until(&ends, from)));
		l->under_way += under_way(&starts, &ends, from, to);
		chosen++;
	}
	if (r == 0 && chosen > 0) {
		l->under_way /= (double)chosen;
		l->known = fit(bins, &l->exponent);
	}
	for (unsigned i = 0; i < BINS; i++)
		free(bins[i].ns);
	free(starts.list);
	free(ends.list);
	return r;
}

const struct hr_load *hr__load_of(const struct hr_loads *l, uint32_t stream)
{
	const struct hr_load *most = NULL;

	for (size_t i = 0; i < l->n; i++)
		if (l->list[i].stream == stream &&
		    (most == NULL || l->list[i].total_s > most->total_s))
			most = &l->list[i];
	return most;
}

int hr__loads_make(const struct hr_query *q, struct hr_samples *s, struct hr_loads *ret)
{
	int r = 0;

	for (size_t i = 0; i < s->n; i++) {
		struct hr_file_info info;

		/* From here on, `file` is the number of the mount. */
		s->list[i].file = hr_stream_file(q->streams[s->list[i].stream].s, s->list[i].file,
						 false, &info) == 0
				      ? info.mount
				      : UINT32_MAX;
	}
	if (s->n > 0)
		qsort(s->list, s->n, sizeof(*s->list), by_mount_and_time);
	for (size_t i = 0, n; r == 0 && i < s->n; i += n) {
		const struct hr_sample *first = &s->list[i];

		n = 1;
		while (i + n < s->n && s->list[i + n].stream == first->stream &&
		       s->list[i + n].file == first->file)
			n++;
		if (!hr_array_reserve(ret->list, ret->n, ret->room))
			return -ENOMEM;
		ret->list[ret->n] = (struct hr_load){.stream = first->stream, .mount = first->file};
		r = measure(first, n, &ret->list[ret->n++]);
	}
	return r;
}

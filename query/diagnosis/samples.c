/* SPDX-License-Identifier: Apache-2.0 */
#include "query/diagnosis/samples.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "common/array.h"
#include "common/order.h"
#include "proto/abi.h"
#include "query/tables/internal.h"

#define SAMPLES_MAX ((size_t)1 << 16)
#define SLOT_SHIFT  28 /* a slot of time lasts 2^28 ns (0.27 s) */

/* Bins of operations by how many were under way at their beginning: 1, 2, 3 to 4, 5 to 8... */
#define BINS	  8u
#define BIN_LEAST 2u /* bins with fewer operations are ignored */
/* At least this many operations that began alone are needed for a duration without load. */
#define ALONE_LEAST 4u

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

/* Sorted times. sums[i]: the sum of list[0] to list[i]. */
struct moments {
	double *list, *sums;
	size_t n;
};

/* The caller frees m->list. -ENOMEM. */
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

	hr_doubles_sort(m->list, m->n);
	for (size_t i = 0; i < m->n; i++)
		m->sums[i] = sum += m->list[i];
}

/* Returns the number of times that are not after `time`. */
static size_t moments_until(const struct moments *m, double time)
{
	return hr_array_search(i, m->n, m->list[i] <= time);
}

/* Returns the sum of the durations from each earlier time of *m until `time`. */
static double moments_ago(const struct moments *m, double time)
{
	size_t n = moments_until(m, time);

	return n > 0 ? time * (double)n - m->sums[n - 1] : 0;
}

/* Returns the mean number of operations under way from `from` to `to`. */
static double under_way(const struct moments *starts, const struct moments *ends, double from,
			double to)
{
	double all = moments_ago(starts, to) - moments_ago(starts, from);
	double ended = moments_ago(ends, to) - moments_ago(ends, from);

	return to > from ? fmax(1, (all - ended) / (to - from)) : 1;
}

struct bin {
	double *ns;
	size_t n, room;
	double begun; /* sum over these operations: how many were under way when each began */
};

static unsigned bin_of(double begun)
{
	unsigned bin = (unsigned)lround(log2(begun));

	return bin < BINS ? bin : BINS - 1;
}

/*
 * Computes the exponent (samples.h): the slope of a line through the medians of the bins. False:
 * fewer than two bins have enough operations.
 */
static bool fit(struct bin *bins, double *ret)
{
	double n = 0, sx = 0, sy = 0, sxx = 0, sxy = 0;
	unsigned used = 0;

	for (unsigned i = 0; i < BINS; i++) {
		double x, y, weight = sqrt((double)bins[i].n);

		if (bins[i].n < BIN_LEAST)
			continue;
		hr_doubles_sort(bins[i].ns, bins[i].n);
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

/* Adds an operation that began when `begun` operations were under way. -ENOMEM. */
static int add_to_bin(struct bin *bins, const struct hr_sample *sample, double begun)
{
	struct bin *b = &bins[bin_of(begun)];

	if (!hr_array_reserve(b->ns, b->n, b->room))
		return -ENOMEM;
	b->ns[b->n++] = (double)(sample->to - sample->from);
	b->begun += begun;
	return 0;
}

/* The samples of a mount for one kind of operation. */
struct load_operation {
	double *alone; /* durations of those that began with no other operation under way */
	size_t n_alone, room;
	size_t n;
	double sum, least; /* sum and minimum of all durations */
	double service;	   /* duration without load, in ns */
};

static int add_duration(struct load_operation *o, double ns, bool alone)
{
	o->least = o->n == 0 || ns < o->least ? ns : o->least;
	o->sum += ns;
	o->n++;
	if (!alone)
		return 0;
	if (!hr_array_reserve(o->alone, o->n_alone, o->room))
		return -ENOMEM;
	o->alone[o->n_alone++] = ns;
	return 0;
}

static void find_service(struct load_operation *o)
{
	hr_doubles_sort(o->alone, o->n_alone);
	o->service = fmax(1, o->n_alone >= ALONE_LEAST ? o->alone[o->n_alone / 10] : o->least);
}

/* The samples of a mount, sorted by time. */
struct mount_samples {
	const struct hr_sample *list;
	size_t n;
	struct load_operation ops[HR_OP_MAX];
	struct moments starts, ends;
	double *served; /* served[i]: sum of the durations without load of list[0] to list[i] */
};

static double since_first(const struct mount_samples *m, int64_t ns)
{
	return (double)(ns - m->list[0].from);
}

/* Returns the number of samples that ended before sample `i` began. */
static size_t ended_before(const struct mount_samples *m, size_t i)
{
	return moments_until(&m->ends, since_first(m, m->list[i].from));
}

/* Call mount_done after a failure, too. -ENOMEM. */
static int mount_read(struct mount_samples *m)
{
	double sum = 0;

	m->served = malloc(m->n * sizeof(*m->served));
	if (m->served == NULL || moments_init(&m->starts, m->n) < 0 ||
	    moments_init(&m->ends, m->n) < 0)
		return -ENOMEM;
	for (size_t i = 0; i < m->n; i++) {
		m->starts.list[i] = since_first(m, m->list[i].from);
		m->ends.list[i] = since_first(m, m->list[i].to);
	}
	moments_sort(&m->starts);
	moments_sort(&m->ends);
	for (size_t i = 0; i < m->n; i++)
		if (add_duration(&m->ops[m->list[i].op], (double)(m->list[i].to - m->list[i].from),
				 ended_before(m, i) >= i) < 0)
			return -ENOMEM;
	for (unsigned op = 0; op < HR_OP_MAX; op++)
		find_service(&m->ops[op]);
	for (size_t i = 0; i < m->n; i++)
		m->served[i] = sum += m->ops[m->list[i].op].service;
	return 0;
}

static void mount_done(struct mount_samples *m)
{
	for (unsigned op = 0; op < HR_OP_MAX; op++)
		free(m->ops[op].alone);
	free(m->starts.list);
	free(m->ends.list);
	free(m->served);
}

/*
 * Returns how many times as long the operation takes if the storage serves operations one after the
 * other, so the operation waits for all that are under way. The first of these is partly done, so
 * only the rest of its time counts.
 */
static double begun_with(const struct mount_samples *m, size_t i)
{
	double from = since_first(m, m->list[i].from), before;
	size_t ended = ended_before(m, i);

	if (ended >= i)
		return 1;
	before = m->ends.list[ended] - from + m->served[i - 1] - m->served[ended];
	return 1 + before / m->ops[m->list[i].op].service;
}

static double needs(const struct load_operation *o)
{
	return o->service * (double)o->n;
}

/*
 * Returns the kind of operation that needs most time of the storage; 0: none. Only one kind is
 * used, because durations of different kinds are not comparable.
 */
static uint16_t choose(const struct mount_samples *m)
{
	uint16_t most = 0;

	for (uint16_t op = 1; op < HR_OP_MAX; op++)
		if (needs(&m->ops[op]) > (most > 0 ? needs(&m->ops[most]) : 0))
			most = op;
	return most;
}

static int compare(const struct mount_samples *m, struct hr_load *l)
{
	struct bin bins[BINS] = {0};
	size_t chosen = 0;
	int r = 0;

	for (unsigned op = 0; op < HR_OP_MAX; op++)
		l->total_s += m->ops[op].sum / 1e9;
	l->op = choose(m);
	for (size_t i = 0; r == 0 && i < m->n; i++) {
		if (m->list[i].op == 0 || m->list[i].op != l->op)
			continue;
		r = add_to_bin(bins, &m->list[i], begun_with(m, i));
		l->under_way += under_way(&m->starts, &m->ends, since_first(m, m->list[i].from),
					  since_first(m, m->list[i].to));
		chosen++;
	}
	if (r == 0 && chosen > 0) {
		l->under_way /= (double)chosen;
		l->known = fit(bins, &l->exponent);
	}
	for (unsigned i = 0; i < BINS; i++)
		free(bins[i].ns);
	return r;
}

/* Computes the load of a mount from its samples, which are sorted by time. -ENOMEM. */
static int measure(const struct hr_sample *list, size_t n, struct hr_load *l)
{
	struct mount_samples m = {.list = list, .n = n};
	int r = mount_read(&m);

	if (r == 0)
		r = compare(&m, l);
	mount_done(&m);
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

		/* From this line on, `file` contains the number of the file's mount. */
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

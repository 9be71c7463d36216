/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/query/train_store.h"

#include <stdlib.h>
#include <string.h>

#include "tests/unit.h"

struct spans {
	uint64_t (*list)[2];
	size_t n;
};

static int by_start(const void *a, const void *b)
{
	const uint64_t *x = a, *y = b;

	return (x[0] > y[0]) - (x[0] < y[0]);
}

static bool counts(const struct hr_event *e, unsigned set)
{
	return (set >> e->task & 1) && e->file != TRAIN_RUNTIME;
}

/* What a set of threads has under way between two moments. */
static void add_spans(const struct train *t, unsigned set, uint64_t from, uint64_t to,
		      struct spans *s)
{
	s->list = realloc(s->list, (s->n + t->n_events + 1) * sizeof(*s->list));
	assert_non_null(s->list);
	for (size_t i = 0; i < t->n_events; i++) {
		const struct hr_event *e = &t->events[i];
		uint64_t end = e->start_ns + e->dur_ns;

		if (!counts(e, set) || e->start_ns >= to || end <= from)
			continue;
		s->list[s->n][0] = e->start_ns > from ? e->start_ns : from;
		s->list[s->n++][1] = end < to ? end : to;
	}
}

static uint64_t united(struct spans *s)
{
	uint64_t reached = 0, sum = 0;

	qsort(s->list, s->n, sizeof(*s->list), by_start);
	for (size_t i = 0; i < s->n; i++) {
		uint64_t start = s->list[i][0] > reached ? s->list[i][0] : reached;

		sum += s->list[i][1] > start ? s->list[i][1] - start : 0;
		reached = s->list[i][1] > reached ? s->list[i][1] : reached;
	}
	free(s->list);
	return sum;
}

struct train_sums train_between(const struct train *t, unsigned set, uint64_t from, uint64_t to)
{
	struct train_sums sums = {0};
	struct spans spans = {0};

	for (size_t i = 0; i < t->n_events; i++) {
		const struct hr_event *e = &t->events[i];

		if (!counts(e, set) || e->start_ns < from || e->start_ns >= to)
			continue;
		sums.ops++;
		sums.io_ns += e->dur_ns;
		*(e->op == HR_OP_write ? &sums.bytes_written : &sums.bytes_read) +=
		    (uint64_t)e->ret;
	}
	add_spans(t, set, from, to, &spans);
	sums.busy_ns = united(&spans);
	return sums;
}

static bool is_outermost(const struct hr_region *g, enum train_task task, uint32_t kind,
			 uint64_t from, uint64_t to)
{
	return g->domain == task && g->kind == kind && g->count == 1 && g->depth != 2 &&
	       g->start_ns >= from && g->start_ns < to;
}

static uint64_t busy_in(const struct train *t, enum train_task task, const struct hr_region *g)
{
	return train_between(t, 1u << task, g->start_ns, g->start_ns + g->dur_ns).busy_ns;
}

/* The durations of a thread's operations between two moments. */
static uint64_t durations(const struct train *t, enum train_task task, uint64_t from, uint64_t to)
{
	struct spans spans = {0};
	uint64_t sum = 0;

	add_spans(t, 1u << task, from, to, &spans);
	for (size_t i = 0; i < spans.n; i++)
		sum += spans.list[i][1] - spans.list[i][0];
	free(spans.list);
	return sum;
}

struct train_waited train_waited(const struct train *t, enum train_task task, uint64_t from,
				 uint64_t to)
{
	struct train_waited sums = {0};

	for (size_t i = 0; i < t->n_regions; i++) {
		const struct hr_region *w = &t->regions[i];
		uint64_t own, others = 0;

		if (!is_outermost(w, task, HR_REGION_INPUT_WAIT, from, to))
			continue;
		own = busy_in(t, task, w);
		if (task == TRAIN_0)
			others = durations(t, TRAIN_0_OTHER, w->start_ns, w->start_ns + w->dur_ns);
		sums.own_ns += own;
		sums.others_ns += others < w->dur_ns - own ? others : w->dur_ns - own;
	}
	return sums;
}

/* What a training thread has under way between two moments, outside regions that stop it. */
static uint64_t own_io(const struct train *t, enum train_task task, uint64_t from, uint64_t to)
{
	uint64_t ns = train_between(t, 1u << task, from, to).busy_ns;

	for (size_t i = 0; i < t->n_regions; i++)
		if (is_outermost(&t->regions[i], task, HR_REGION_CHECKPOINT, from, to) ||
		    is_outermost(&t->regions[i], task, HR_REGION_OPTIMIZER, from, to) ||
		    is_outermost(&t->regions[i], task, HR_REGION_INPUT_WAIT, from, to))
			ns -= busy_in(t, task, &t->regions[i]);
	return ns;
}

uint64_t train_unoverlapped(const struct train *t, enum train_task task, uint64_t from, uint64_t to)
{
	struct train_waited waited = train_waited(t, task, from, to);

	return own_io(t, task, from, to) + waited.own_ns + waited.others_ns;
}

unsigned train_rank(enum train_task task)
{
	return 1u << task & TRAIN_RANK_0 ? TRAIN_RANK_0 : 1u << task;
}

struct train_parts train_parts(const struct train *t, enum train_task task, uint64_t from,
			       uint64_t dur)
{
	struct train_parts p = {.dur = dur,
				.own = own_io(t, task, from, from + dur),
				.unoverlapped = train_unoverlapped(t, task, from, from + dur)};

	for (size_t i = 0; i < t->n_regions; i++) {
		const struct hr_region *g = &t->regions[i];

		if (g->domain != task || g->depth == 2 || g->start_ns < from ||
		    g->start_ns >= from + dur)
			continue;
		p.wait += g->kind == HR_REGION_INPUT_WAIT ? g->dur_ns : 0;
		p.checkpoint += g->kind == HR_REGION_CHECKPOINT ? g->dur_ns : 0;
		p.optimizer += g->kind == HR_REGION_OPTIMIZER ? g->dur_ns : 0;
	}
	return p;
}

static int by_number(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

uint64_t train_at_share(uint64_t *list, size_t n, unsigned percent)
{
	size_t at = (n * percent + 99) / 100;

	qsort(list, n, sizeof(*list), by_number);
	return list[at > 0 ? at - 1 : 0];
}

size_t train_lengths(const struct train *t, enum train_task task, uint32_t kind, uint64_t *ret)
{
	size_t n = 0;

	for (size_t i = 0; i < t->n_regions; i++) {
		const struct hr_region *g = &t->regions[i];

		for (uint64_t k = 0; g->domain == task && g->kind == kind && g->depth != 2 &&
				     !g->open && k < g->count;
		     k++)
			ret[n++] = g->dur_ns / g->count;
	}
	return n;
}

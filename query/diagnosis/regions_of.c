/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The table function hr_regions_of(): some rows of the table `regions`. The diagnosis already
 * contains which streams have these rows, so no other streams are read.
 */
#include <errno.h>
#include <stdlib.h>

#include "common/array.h"
#include "common/region.h"
#include "query/diagnosis/diagnosis.h"
#include "query/tables/rows.h"

static const char *const parameters[] = {"what", NULL};
#define CHECKPOINTS  "checkpoints"
#define LONGEST_WAIT "longest_wait"

struct chosen_rows {
	struct hr_rows all; /* all regions of the stream, valid if `gathered` */
	bool gathered;
	size_t *list; /* the chosen rows: numbers of rows of `all` */
	size_t n, room;
};

/* Which regions of a stream are chosen: checkpoints, or those that overlap a time. */
struct selection {
	bool checkpoints;
	int64_t from, to; /* valid if not `checkpoints` */
};

static const char *chosen_check(const char *const *p)
{
	if (p[0] == NULL || (strcmp(p[0], CHECKPOINTS) != 0 && strcmp(p[0], LONGEST_WAIT) != 0))
		return "hr_regions_of: `what` must be " CHECKPOINTS " or " LONGEST_WAIT;
	return NULL;
}

/* Returns false if no region of the stream is chosen. */
static bool choose(const struct hr_rows *rows, const struct hr_diagnosis *d, struct selection *ret)
{
	uint32_t stream = (uint32_t)(rows->st - rows->q->streams);
	const struct hr_train_life *life;
	const struct hr_longest_wait *wait;
	int64_t ns;

	*ret = (struct selection){.checkpoints = strcmp(rows->parameters[0], CHECKPOINTS) == 0};
	if (ret->checkpoints)
		return d->saves[stream];
	life = hr__longest_waiter(d, d->jobs[stream]);
	if (life == NULL || strcmp(rows->q->streams[life->stream].s->node, rows->st->s->node) != 0)
		return false;
	wait = &d->longest[life - d->lives.list];
	ns = hr_longest_ns(wait);
	if (__builtin_sub_overflow(wait->from, ns / 2, &ret->from))
		ret->from = INT64_MIN;
	ret->to = hr_end_ns(wait->to, (uint64_t)ns);
	return true;
}

static bool is_chosen(const struct hr_rows *rows, const struct selection *selection,
		      const struct hr_region *g)
{
	int64_t start = hr_wall_ns(rows->st, g->start_ns);

	if (selection->checkpoints)
		return g->kind == HR_REGION_CHECKPOINT;
	return start < selection->to && hr_end_ns(start, g->dur_ns) > selection->from;
}

static int chosen_gather(struct hr_rows *rows, uint64_t want)
{
	struct chosen_rows *c = calloc(1, sizeof(*c));
	const struct hr_diagnosis *d;
	struct selection selection;
	int r;

	rows->data = c;
	if (c == NULL)
		return -ENOMEM;
	r = hr_diagnosis_shared(rows->q, &d);
	if (r < 0 || !choose(rows, d, &selection))
		return r;
	c->all = (struct hr_rows){.q = rows->q, .st = rows->st};
	c->gathered = true;
	r = hr_regions_kind.gather(&c->all, want);
	for (size_t i = 0; r == 0 && i < c->all.n; i++) {
		struct hr_region g;

		hr_regions_row(&c->all, i, &g);
		if (!is_chosen(rows, &selection, &g))
			continue;
		if (!hr_array_reserve(c->list, c->n, c->room))
			return -ENOMEM;
		c->list[c->n++] = i;
	}
	rows->n = c->n;
	return r;
}

static void chosen_done(struct hr_rows *rows)
{
	struct chosen_rows *c = rows->data;

	if (c == NULL)
		return;
	if (c->gathered)
		hr_regions_kind.done(&c->all);
	free(c->list);
	free(c);
	rows->data = NULL;
}

static uint64_t chosen_proc(const struct hr_rows *rows, size_t row)
{
	const struct chosen_rows *c = rows->data;

	return hr_regions_kind.proc(&c->all, c->list[row]);
}

static void chosen_cell(const struct hr_rows *rows, size_t row, unsigned column,
			struct hr_cell *ret)
{
	const struct chosen_rows *c = rows->data;

	hr_row_cell(&hr_regions_kind, &c->all, c->list[row], column, ret);
}

const struct hr_row_kind hr_regions_of_kind = {
    .table = HR_TABLE_REGIONS,
    .function = "hr_regions_of",
    .parameters = parameters,
    .check = chosen_check,
    .gather = chosen_gather,
    .done = chosen_done,
    .proc = chosen_proc,
    .cell = chosen_cell,
};

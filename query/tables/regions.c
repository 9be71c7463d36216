/* SPDX-License-Identifier: Apache-2.0 */
/* The table `regions`: each element of a frame's arrays is a row. */
#include <errno.h>
#include <stdlib.h>

#include "query/tables/passes.h"
#include "query/tables/rows.h"
#include "common/array.h"
#include "common/region.h"

struct regions {
	struct hr_frames frames;
	size_t *first; /* number of each frame's first row, and then the number of all rows */
	duckdb_string_t **texts; /* texts[frame][number - 1]; empty until a row shows the text */
	struct hr_region row;	 /* the last one that regions_row has returned */
	size_t frame;		 /* its frame */
};

/*
 * Returns a text of a frame. A text is copied when a row first shows it, because a statement may
 * show few rows of many. If memory is short, the text is empty: DuckDB then reports the failure.
 */
static duckdb_string_t text_of(const struct hr_rows *rows, size_t frame, uint32_t number)
{
	const struct regions *g = rows->data;
	const ProtobufCBinaryData *text = &g->frames.list[frame]->regions->texts[number - 1];
	duckdb_string_t *copied = &g->texts[frame][number - 1];
	char *copy;

	if (copied->value.inlined.length > 0 || text->len == 0)
		return *copied;
	copy = hr_pool_get(&rows->q->pool, text->len);
	if (copy == NULL)
		return *copied;
	memcpy(copy, text->data, text->len);
	*copied = hr_string_of(&rows->q->pool, copy, text->len);
	return *copied;
}

/* Removes frames with contradictory contents, and counts them for the notes. */
static void restore(struct hr_query *q, const struct hr_qstream *st, struct hr_frames *f)
{
	size_t kept = 0;

	for (size_t i = 0; i < f->n; i++) {
		Headrace__Frame *frame = f->list[i];
		int r = hr_regions_restore(frame->regions);

		if (r == 0) {
			f->list[kept++] = frame;
			continue;
		}
		for (uint32_t k = 0; k < st->s->n_frames; k++)
			if (st->s->frames[k].seq == frame->seq &&
			    st->s->frames[k].kind == HEADRACE__FRAME__BODY_REGIONS)
				hr_query_damage(q, st, k, r);
	}
	f->n = kept;
}

int hr_regions_read(struct hr_query *q, const struct hr_qstream *st, struct hr_frames *ret)
{
	int r = hr_frames_read(q, st, HEADRACE__FRAME__BODY_REGIONS, ret);

	if (r < 0)
		return r;
	restore(q, st, ret);
	r = hr__passes_add(ret);
	if (r < 0)
		hr_frames_free(ret);
	return r;
}

static int regions_gather(struct hr_rows *rows, uint64_t want)
{
	struct regions *g = calloc(1, sizeof(*g));
	int r;

	(void)want;
	rows->data = g;
	if (g == NULL)
		return -ENOMEM;
	r = hr_regions_read(rows->q, rows->st, &g->frames);
	if (r < 0)
		return r;
	g->first = calloc(g->frames.n + 1, sizeof(*g->first));
	g->texts = calloc(g->frames.n + 1, sizeof(*g->texts));
	if (g->first == NULL || g->texts == NULL)
		return -ENOMEM;
	for (size_t i = 0; r == 0 && i < g->frames.n; i++) {
		const Headrace__Regions *m = g->frames.list[i]->regions;

		g->first[i + 1] = g->first[i] + m->n_key;
		g->texts[i] = calloc(m->n_texts + 1, sizeof(*g->texts[i]));
		r = g->texts[i] != NULL ? 0 : -ENOMEM;
	}
	rows->n = g->first[g->frames.n];
	return r;
}

static void regions_done(struct hr_rows *rows)
{
	struct regions *g = rows->data;

	if (g == NULL)
		return;
	for (size_t i = 0; g->texts != NULL && i < g->frames.n; i++)
		free(g->texts[i]);
	free(g->texts);
	free(g->first);
	hr_frames_free(&g->frames);
	free(g);
}

static size_t regions_find(const struct regions *g, size_t row)
{
	return hr_array_search(i, g->frames.n, g->first[i] <= row) - 1;
}

static uint64_t regions_proc(const struct hr_rows *rows, size_t row)
{
	const struct regions *g = rows->data;
	size_t frame = regions_find(g, row);
	const Headrace__Regions *m = g->frames.list[frame]->regions;

	return m->keys[m->key[row - g->first[frame]]]->proc;
}

static const void *regions_row(const struct hr_rows *rows, size_t row)
{
	struct regions *g = rows->data;

	g->frame = regions_find(g, row);
	hr_regions_get(g->frames.list[g->frame]->regions, row - g->first[g->frame], &g->row);
	return &g->row;
}

void hr_regions_row(const struct hr_rows *rows, size_t row, struct hr_region *ret)
{
	*ret = *(const struct hr_region *)regions_row(rows, row);
}

static void regions_cell(const struct hr_rows *rows, size_t row, unsigned column, struct hr_cell *c)
{
	const struct hr_region *g = regions_row(rows, row);
	uint32_t text = column == HR_REGIONS_domain	? g->domain
			: column == HR_REGIONS_category ? g->category
			: column == HR_REGIONS_name	? g->name
							: g->args;

	if (column == HR_REGIONS_kind) {
		hr_cell_constant(c, hr_region_kind_name(g->kind));
		return;
	}
	c->null = text == 0;
	if (!c->null)
		c->s = text_of(rows, ((const struct regions *)rows->data)->frame, text);
}

const struct hr_row_kind hr_regions_kind = {
    .table = HR_TABLE_REGIONS,
    .many = true,
    .gather = regions_gather,
    .done = regions_done,
    .proc = regions_proc,
    .row = regions_row,
    .cell = regions_cell,
};

/* SPDX-License-Identifier: Apache-2.0 */
/* The tables `labels` and `nodes`. */
#include <errno.h>
#include <stdlib.h>

#include "query/tables/rows.h"

/* Each stream of a job repeats the labels of the job, so the view selects DISTINCT rows. */

struct label {
	duckdb_string_t key, value;
};

static int labels_take(struct hr_rows *rows, const Headrace__JobEvent *e)
{
	struct hr_pool *pool = &rows->q->pool;

	for (size_t i = 0; i < e->n_labels; i++) {
		struct label *new = hr_rows_add(rows, sizeof(*new));

		if (new == NULL)
			return -ENOMEM;
		*new = (struct label){hr__string_copy(pool, e->labels[i]->key),
				      hr__string_copy(pool, e->labels[i]->value)};
	}
	return 0;
}

/* Each job event of a stream repeats all labels, so only the last event with labels counts. */
static int labels_gather(struct hr_rows *rows, uint64_t want)
{
	struct hr_frames events;
	size_t last;
	int r;

	(void)want;
	r = hr_frames_read(rows->q, rows->st, HEADRACE__FRAME__BODY_JOB, &events);
	if (r < 0)
		return r;
	last = events.n;
	while (last > 0 && events.list[last - 1]->job->n_labels == 0)
		last--;
	if (last > 0)
		r = labels_take(rows, events.list[last - 1]->job);
	hr_frames_free(&events);
	return r;
}

static void labels_cell(const struct hr_rows *rows, size_t row, unsigned column, struct hr_cell *c)
{
	const struct label *label = (const struct label *)rows->data + row;

	c->s = column == HR_LABELS_key ? label->key : label->value;
}

const struct hr_row_kind hr__labels_kind = {
    .table = HR_TABLE_LABELS,
    .of_job = true,
    .gather = labels_gather,
    .cell = labels_cell,
};

/* State "killed": headraced cut the stream short, or the stream stopped without an end. */
static int nodes_gather(struct hr_rows *rows, uint64_t want)
{
	static const char *const states[] = {[HR_STREAM_RUNNING] = "running",
					     [HR_STREAM_SILENT] = "silent",
					     [HR_STREAM_CUT] = "killed",
					     [HR_STREAM_ENDED] = "ended"};
	struct hr_frames ends;
	const char **state;
	int r;

	(void)want;
	if (rows->st->s->added_to != NULL) /* the node has a row for its recorded stream */
		return 0;
	r = hr_frames_read(rows->q, rows->st, HEADRACE__FRAME__BODY_STREAM_END, &ends);
	if (r < 0)
		return r;
	state = hr_rows_add(rows, sizeof(*state));
	if (state != NULL)
		*state = ends.n > 0 && ends.list[ends.n - 1]->stream_end->cut_short
			     ? "killed"
			     : states[rows->st->state];
	hr_frames_free(&ends);
	return state != NULL ? 0 : -ENOMEM;
}

static const void *nodes_row(const struct hr_rows *rows, size_t row)
{
	(void)row;
	return rows->st->s;
}

static void nodes_cell(const struct hr_rows *rows, size_t row, unsigned column, struct hr_cell *c)
{
	const struct hr_stream *s = rows->st->s;

	(void)row;
	switch (column) {
	case HR_NODES_boot:
		hr__cell_text(c, rows->st->boot);
		break;
	/* Only a collector can estimate the clock offset. */
	case HR_NODES_clock_offset_ns:
		c->u = (uint64_t)s->clock_offset_ns;
		c->null = !s->clock_known;
		break;
	case HR_NODES_clock_error_ns:
		c->u = s->clock_offset_error_ns;
		c->null = !s->clock_known;
		break;
	case HR_NODES_state:
		hr_cell_constant(c, *(const char *const *)rows->data);
		break;
	case HR_NODES_events:
		for (uint32_t i = 0; i < s->n_batches; i++)
			c->u += s->batches[i].count;
		break;
	case HR_NODES_silent_ns:
		c->null = rows->st->state != HR_STREAM_SILENT;
		c->u = rows->q->now_ns > s->heard_ns ? rows->q->now_ns - s->heard_ns : 0;
		break;
	default:
		c->u = s->bytes;
	}
}

const struct hr_row_kind hr__nodes_kind = {
    .table = HR_TABLE_NODES,
    .gather = nodes_gather,
    .row = nodes_row,
    .cell = nodes_cell,
};

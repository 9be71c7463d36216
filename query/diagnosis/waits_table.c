/* SPDX-License-Identifier: Apache-2.0 */
/* The table `waits`: the reasons of each wait for a batch. */
#include <errno.h>
#include <stdlib.h>

#include "query/diagnosis/wait_rows.h"
#include "query/tables/rows.h"

static const char *const parameters[] = {"longest", NULL};

static const char *waits_check(const char *const *p)
{
	if (p[0] != NULL && strcmp(p[0], "true") != 0 && strcmp(p[0], "false") != 0)
		return "hr_waits: `longest` must be true or false";
	return NULL;
}

static int waits_gather(struct hr_rows *rows, uint64_t want)
{
	struct hr_wait_rows *waits = calloc(1, sizeof(*waits));
	const struct hr_diagnosis *d;
	bool longest;
	int r;

	(void)want;
	rows->data = waits;
	if (waits == NULL)
		return -ENOMEM;
	longest = rows->parameters[0] != NULL && strcmp(rows->parameters[0], "true") == 0;
	r = hr_diagnosis_shared(rows->q, &d);
	if (r == 0)
		r = longest ? hr_wait_rows_longest(d, waits) : hr_wait_rows_make(d, waits);
	rows->n = waits->n;
	return r;
}

static void waits_done(struct hr_rows *rows)
{
	struct hr_wait_rows *waits = rows->data;

	if (waits != NULL)
		free(waits->rows);
	free(waits);
	rows->data = NULL;
}

static const struct hr_wait_row *waits_row(const struct hr_rows *rows, size_t row)
{
	return &((const struct hr_wait_rows *)rows->data)->rows[row];
}

static uint64_t waits_proc(const struct hr_rows *rows, size_t row)
{
	return waits_row(rows, row)->life->proc;
}

static const struct hr_qstream *waits_stream(const struct hr_rows *rows, size_t row)
{
	return &rows->q->streams[waits_row(rows, row)->life->stream];
}

static void cell_or_null(struct hr_cell *c, uint64_t value, uint64_t none)
{
	c->u = value;
	c->null = value == none;
}

static void waits_cell(const struct hr_rows *rows, size_t row, unsigned column, struct hr_cell *c)
{
	const struct hr_wait_row *w = waits_row(rows, row);

	switch (column) {
	case HR_WAITS_epoch:
		cell_or_null(c, w->piece->epoch, HR_REGION_UNKNOWN);
		break;
	case HR_WAITS_step:
		cell_or_null(c, w->piece->step, HR_REGION_UNKNOWN);
		break;
	case HR_WAITS_loop_loader:
		cell_or_null(c, hr_block_loader(w->life, w->piece), UINT64_MAX);
		break;
	case HR_WAITS_phase:
		hr_cell_constant(c, hr_phase_name(w->piece->phase));
		break;
	case HR_WAITS_batch:
		cell_or_null(c, w->batch, UINT64_MAX);
		break;
	case HR_WAITS_start_ns:
		c->i = w->from;
		break;
	case HR_WAITS_dur_ns:
		c->i = w->to - w->from;
		break;
	case HR_WAITS_piece_ns:
		c->i = w->piece->from;
		break;
	case HR_WAITS_piece_dur_ns:
		c->i = w->piece->to - w->piece->from;
		break;
	case HR_WAITS_maker:
		cell_or_null(c, w->maker, 0);
		break;
	case HR_WAITS_maker_tid:
		cell_or_null(c, w->maker_tid, 0);
		break;
	case HR_WAITS_part:
		hr_cell_constant(c, hr_part_name(w->part));
		break;
	default:
		c->u = w->ns;
	}
}

const struct hr_row_kind hr_waits_kind = {
    .table = HR_TABLE_WAITS,
    .many = true,
    .parameters = parameters,
    .check = waits_check,
    .gather = waits_gather,
    .done = waits_done,
    .proc = waits_proc,
    .stream = waits_stream,
    .cell = waits_cell,
};

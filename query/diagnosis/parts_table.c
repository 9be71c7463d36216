/* SPDX-License-Identifier: Apache-2.0 */
/* The table `parts`: what each training thread spent its time on. */
#include <errno.h>
#include <stdlib.h>

#include "query/diagnosis/diagnosis.h"
#include "query/tables/rows.h"

static int parts_gather(struct hr_rows *rows, uint64_t want)
{
	struct hr_parts *parts = calloc(1, sizeof(*parts));
	const struct hr_diagnosis *d;
	int r;

	(void)want;
	rows->data = parts;
	if (parts == NULL)
		return -ENOMEM;
	r = hr_diagnosis_shared(rows->q, &d);
	if (r == 0)
		r = hr_parts_make(d, parts);
	rows->n = parts->n;
	return r;
}

static void parts_done(struct hr_rows *rows)
{
	struct hr_parts *parts = rows->data;

	if (parts != NULL)
		free(parts->rows);
	free(parts);
	rows->data = NULL;
}

static const struct hr_parts_row *parts_row(const struct hr_rows *rows, size_t row)
{
	return &((const struct hr_parts *)rows->data)->rows[row];
}

static uint64_t parts_proc(const struct hr_rows *rows, size_t row)
{
	return parts_row(rows, row)->proc;
}

static const struct hr_qstream *parts_stream(const struct hr_rows *rows, size_t row)
{
	return &rows->q->streams[parts_row(rows, row)->stream];
}

static void parts_cell(const struct hr_rows *rows, size_t row, unsigned column, struct hr_cell *c)
{
	const struct hr_parts_row *p = parts_row(rows, row);

	switch (column) {
	case HR_PARTS_epoch:
		c->u = p->epoch;
		c->null = p->epoch == HR_REGION_UNKNOWN;
		break;
	case HR_PARTS_step:
		c->u = p->step;
		c->null = p->step == HR_REGION_UNKNOWN;
		break;
	case HR_PARTS_loop_loader:
		c->u = p->loader;
		c->null = p->loader == UINT64_MAX;
		break;
	case HR_PARTS_phase:
		hr_cell_constant(c, hr_phase_name(p->phase));
		break;
	case HR_PARTS_part:
		hr_cell_constant(c, hr_part_name(p->part));
		break;
	case HR_PARTS_start_ns:
		c->i = p->start_ns;
		break;
	default:
		c->u = p->ns;
	}
}

const struct hr_row_kind hr_parts_kind = {
    .table = HR_TABLE_PARTS,
    .many = true,
    .gather = parts_gather,
    .done = parts_done,
    .proc = parts_proc,
    .stream = parts_stream,
    .cell = parts_cell,
};

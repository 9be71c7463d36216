/* SPDX-License-Identifier: Apache-2.0 */
/* The table `rollups`: totals for each window, process, operation, mount and scope. */
#include "query/tables/sums.h"
#include "common/ops.h"

/* The key of a row: start of the window, process, and the rest in one number. */
static int rollups_add(struct hr_query_sums *s, const Headrace__RollupBatch *batch,
		       Headrace__Rollup **rows, size_t n)
{
	int r = 0;

	for (size_t k = 0; r == 0 && k < n; k++) {
		const Headrace__Rollup *row = rows[k];
		uint64_t rest = (uint64_t)(uint16_t)row->op << 40 | (uint64_t)row->mount << 8 |
				(uint8_t)row->scope;

		r = hr_sums_add(s, batch->window_start_ns, row->proc, rest, row);
	}
	return r;
}

/* Rows for the sides of copies are needed only if the statement uses the column `side`. */
static int rollups_gather(struct hr_rows *rows, uint64_t want)
{
	struct hr_query_sums *s;
	int r = hr_sums_new(rows, HEADRACE__FRAME__BODY_ROLLUPS, &s);

	for (size_t i = 0; r == 0 && i < s->frames.n; i++) {
		const Headrace__RollupBatch *batch = s->frames.list[i]->rollups;

		r = rollups_add(s, batch, batch->rows, batch->n_rows);
		if (r == 0 && HR_WANTS(want, HR_ROLLUPS_side))
			r = rollups_add(s, batch, batch->sides, batch->n_sides);
	}
	return r == 0 ? hr_sums_group(rows) : r;
}

static uint64_t rollups_proc(const struct hr_rows *rows, size_t row)
{
	size_t n;

	return hr_sums_run(rows, row, &n)->key[1];
}

static const char *class_name(uint32_t op)
{
	if (op < HR_OP_FIRST)
		return hr_class_name(hr_side_reads(op) ? HR_CLASS_READ : HR_CLASS_WRITE);
	return hr_class_name(hr_op_info((uint16_t)op)->class);
}

static const char *side_name(uint32_t op)
{
	if (op >= HR_OP_FIRST)
		return NULL;
	return hr_side_single(op) ? "single" : "copy";
}

static void rollups_cell(const struct hr_rows *rows, size_t row, unsigned column, struct hr_cell *c)
{
	size_t n;
	const struct hr_sums_entry *e = hr_sums_run(rows, row, &n);
	const Headrace__Rollup *first = e->msg;
	const struct hr_op_info *op = hr_op_info((uint16_t)first->op);

	switch (column) {
	case HR_ROLLUPS_class:
		hr_cell_constant(c, class_name(first->op));
		break;
	case HR_ROLLUPS_side:
		hr_cell_constant(c, side_name(first->op));
		break;
	case HR_ROLLUPS_window_start_ns:
		c->i = hr_wall_ns(rows->st, e->key[0]);
		break;
	default: /* bytes */
		c->null = op->name && op->bytes_rule == HR_BYTES_NONE;
		for (size_t i = 0; i < n; i++)
			c->u += ((const Headrace__Rollup *)e[i].msg)->bytes;
	}
}

const struct hr_row_kind hr__rollups_kind = {
    .table = HR_TABLE_ROLLUPS,
    .many = true,
    .gather = rollups_gather,
    .done = hr_sums_done,
    .proc = rollups_proc,
    .row = hr_sums_first,
    .cell = rollups_cell,
};

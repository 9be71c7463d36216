/* SPDX-License-Identifier: Apache-2.0 */
/* The table `losses`: what was not recorded, and why. */
#include "query/tables/sums.h"
#include "common/fnv.h"
#include "common/ops.h"

/* The key of a row: process, operation, hash of the reason (which may be unknown here). */
static int losses_gather(struct hr_rows *rows, uint64_t want)
{
	struct hr_query_sums *s;
	int r = hr_sums_new(rows, HEADRACE__FRAME__BODY_LOSS, &s);

	(void)want;
	for (size_t i = 0; r == 0 && i < s->frames.n; i++) {
		const Headrace__Loss *loss = s->frames.list[i]->loss;

		for (size_t k = 0; r == 0 && k < loss->n_rows; k++) {
			const Headrace__LossRow *row = loss->rows[k];

			r = hr_sums_add(s, row->proc, row->op,
					hr_fnv(HR_FNV_BASIS, row->reason, strlen(row->reason)),
					row);
		}
	}
	return r == 0 ? hr_sums_group(rows) : r;
}

static void losses_cell(const struct hr_rows *rows, size_t row, unsigned column, struct hr_cell *c)
{
	size_t n;
	const struct hr_sums_entry *e = hr_sums_run(rows, row, &n);
	const Headrace__LossRow *first = e->msg;

	switch (column) {
	case HR_LOSSES_reason:
		hr__cell_text(c, hr__string_copy(&rows->q->pool, first->reason));
		break;
	case HR_LOSSES_op:
		hr_cell_constant(c, hr_op_info((uint16_t)first->op)->name);
		break;
	case HR_LOSSES_count:
		c->u = hr_sums_total(e, n, offsetof(Headrace__LossRow, count));
		break;
	case HR_LOSSES_bytes:
		c->u = hr_sums_total(e, n, offsetof(Headrace__LossRow, bytes));
		break;
	default:
		c->u = hr_sums_total(e, n, offsetof(Headrace__LossRow, dur_ns));
	}
}

const struct hr_row_kind hr__losses_kind = {
    .table = HR_TABLE_LOSSES,
    .gather = losses_gather,
    .done = hr_sums_done,
    .proc = hr_sums_proc,
    .cell = losses_cell,
};

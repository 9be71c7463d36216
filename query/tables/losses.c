/* SPDX-License-Identifier: Apache-2.0 */
/* The table `losses`: what was not recorded, and why. */
#include "query/tables/sums.h"
#include "common/fnv.h"

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

const struct hr_row_kind hr__losses_kind = {
    .table = HR_TABLE_LOSSES,
    .gather = losses_gather,
    .done = hr_sums_done,
    .proc = hr_sums_proc,
    .row = hr_sums_first,
};

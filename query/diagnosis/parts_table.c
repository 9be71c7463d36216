/* SPDX-License-Identifier: Apache-2.0 */
/* The table `parts`: what each training thread spent its time on. */
#include <errno.h>
#include <stdlib.h>

#include "query/diagnosis/parts_internal.h"
#include "query/tables/rows.h"

/* Rows of a training process follow each other in the order of time, and add up to its time. */
struct part_row {
	const struct hr_train_life *life;
	const struct hr_block *first; /* of the step or, outside steps, of the phase */
	uint64_t ns;
	uint8_t part;
};

static int add_rows(void *data, const struct hr_train_life *life, const struct hr_block *first,
		    const uint64_t ns[HR_PART_END])
{
	for (unsigned part = 0; part < HR_PART_END; part++) {
		struct part_row *row;

		if (ns[part] == 0)
			continue;
		row = hr_rows_add(data, sizeof(*row));
		if (row == NULL)
			return -ENOMEM;
		*row = (struct part_row){life, first, ns[part], (uint8_t)part};
	}
	return 0;
}

static int parts_gather(struct hr_rows *rows, uint64_t want)
{
	const struct hr_diagnosis *d;
	int r = hr_diagnosis_shared(rows->q, &d);

	(void)want;
	for (size_t i = 0; r == 0 && i < d->lives.n; i++)
		r = hr__parts_each(d, i, add_rows, rows);
	return r;
}

static const void *parts_row(const struct hr_rows *rows, size_t row)
{
	const struct part_row *p = (const struct part_row *)rows->data + row;

	rows->made->part =
	    (struct hr_part_row){.of = {&rows->q->streams[p->life->stream], p->life->proc},
				 .epoch = p->first->epoch,
				 .step = p->first->step,
				 .loop_loader = hr_block_loader(p->life, p->first),
				 .phase = hr_phase_name(p->first->phase),
				 .part = hr_part_name(p->part),
				 .start_ns = p->first->from,
				 .ns = p->ns};
	return &rows->made->part;
}

const struct hr_row_kind hr_parts_kind = {
    .table = HR_TABLE_PARTS,
    .all = true,
    .many = true,
    .gather = parts_gather,
    .row = parts_row,
};

/* SPDX-License-Identifier: Apache-2.0 */
/* The table `kernel_records`: the kernel's counts of operations of a process on a file. */
#include "query/tables/sums.h"
#include "common/cause.h"

/* The key of a row: process, file, and operation and cause in one number. */
static int kernel_records_gather(struct hr_rows *rows, uint64_t want)
{
	struct hr_query_sums *s;
	int r = hr_sums_new(rows, HEADRACE__FRAME__BODY_KERNEL_RECORDS, &s);

	for (size_t i = 0; r == 0 && i < s->frames.n; i++) {
		const Headrace__KernelRecords *batch = s->frames.list[i]->kernel_records;

		for (size_t k = 0; r == 0 && k < batch->n_rows; k++) {
			const Headrace__KernelRecord *row = batch->rows[k];

			r = hr_sums_add(s, row->proc, row->file,
					(uint64_t)row->op << 32 | row->cause, row);
		}
	}
	if (r == 0)
		r = hr__file_names(rows, want, HR_TABLE_KERNEL_RECORDS);
	return r == 0 ? hr_sums_group(rows) : r;
}

static uint32_t kernel_records_file(const struct hr_rows *rows, size_t row)
{
	const Headrace__KernelRecord *first = hr_sums_first(rows, row);

	return hr_stream_file_number(rows->st->s, first->file);
}

static void kernel_records_cell(const struct hr_rows *rows, size_t row, unsigned column,
				struct hr_cell *c)
{
	const Headrace__KernelRecord *first = hr_sums_first(rows, row);

	(void)column; /* cause */
	hr_cell_constant(c, hr_cause_name(first->cause));
}

const struct hr_row_kind hr__kernel_records_kind = {
    .table = HR_TABLE_KERNEL_RECORDS,
    .gather = kernel_records_gather,
    .done = hr_sums_done,
    .proc = hr_sums_proc,
    .row = hr_sums_first,
    .file = kernel_records_file,
    .cell = kernel_records_cell,
};

/* SPDX-License-Identifier: Apache-2.0 */
/* The table `kernel_records`: the kernel's counts of operations of a process on a file. */
#include "query/tables/sums.h"
#include "common/cause.h"
#include "common/ops.h"

static const enum hr_file_part file_parts[HR_KERNEL_RECORDS_END] = {
    [HR_KERNEL_RECORDS_path] = HR_FILE_PATH,
    [HR_KERNEL_RECORDS_scope] = HR_FILE_SCOPE,
    [HR_KERNEL_RECORDS_mount] = HR_FILE_MOUNT,
    [HR_KERNEL_RECORDS_fs_type] = HR_FILE_FS_TYPE,
    [HR_KERNEL_RECORDS_file_id] = HR_FILE_HASH,
};

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
		r = hr__file_names(rows, want, file_parts, HR_KERNEL_RECORDS_END);
	return r == 0 ? hr_sums_group(rows) : r;
}

static void kernel_records_cell(const struct hr_rows *rows, size_t row, unsigned column,
				struct hr_cell *c)
{
	const Headrace__KernelRecord *first = hr_sums_first(rows, row);
	const struct hr_op_info *op = hr_op_info((uint16_t)first->op);
	uint32_t file;

	switch (column) {
	case HR_KERNEL_RECORDS_op:
		hr_cell_constant(c, op->name);
		break;
	case HR_KERNEL_RECORDS_api:
		hr_cell_constant(c, op->name ? hr_api_name(op->api) : NULL);
		break;
	case HR_KERNEL_RECORDS_class:
		hr_cell_constant(c, op->name ? hr_class_name(op->class) : NULL);
		break;
	case HR_KERNEL_RECORDS_cause:
		hr_cell_constant(c, hr_cause_name(first->cause));
		break;
	default:
		file = hr_stream_file_number(rows->st->s, first->file);
		hr__cell_file(rows, file, file_parts[column], c);
		if (column == HR_KERNEL_RECORDS_scope)
			c->null = file == 0;
	}
}

const struct hr_row_kind hr__kernel_records_kind = {
    .table = HR_TABLE_KERNEL_RECORDS,
    .gather = kernel_records_gather,
    .done = hr_sums_done,
    .proc = hr_sums_proc,
    .row = hr_sums_first,
    .cell = kernel_records_cell,
};

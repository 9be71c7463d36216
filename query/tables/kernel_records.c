/* SPDX-License-Identifier: Apache-2.0 */
/* The table `kernel_records`: the kernel's counts of operations of a process on a file. */
#include "query/tables/sums.h"
#include "common/cause.h"
#include "common/ops.h"

/* The key of a row: process, file, and operation and cause in one number. */
static int kernel_records_gather(struct hr_rows *rows, uint64_t want)
{
	struct hr_query_sums *s;
	unsigned names = 0;
	int r = hr_sums_new(rows, HEADRACE__FRAME__BODY_KERNEL_RECORDS, &s);

	for (size_t i = 0; r == 0 && i < s->frames.n; i++) {
		const Headrace__KernelRecords *batch = s->frames.list[i]->kernel_records;

		for (size_t k = 0; r == 0 && k < batch->n_rows; k++) {
			const Headrace__KernelRecord *row = batch->rows[k];

			r = hr_sums_add(s, row->proc, row->file,
					(uint64_t)row->op << 32 | row->cause, row);
		}
	}
	if (HR_WANTS(want, HR_KERNEL_RECORDS_path))
		names |= HR_NAMES_PATH;
	if (HR_WANTS(want, HR_KERNEL_RECORDS_file_id) || HR_WANTS(want, HR_KERNEL_RECORDS_scope) ||
	    HR_WANTS(want, HR_KERNEL_RECORDS_mount) || HR_WANTS(want, HR_KERNEL_RECORDS_fs_type))
		names |= HR_NAMES_INFO;
	if (r == 0)
		r = hr__names_need(rows->q, rows->st, names);
	return r == 0 ? hr_sums_group(rows) : r;
}

static void file_cell(const struct hr_qstream *st, uint32_t id, unsigned column, struct hr_cell *c)
{
	const struct hr_query_names *names = &st->names;
	uint32_t file = hr_stream_file_number(st->s, id);

	switch (column) {
	case HR_KERNEL_RECORDS_path:
		hr__cell_text(c, names->path[file]);
		break;
	case HR_KERNEL_RECORDS_scope:
		hr_cell_constant(c, names->scope[file] != 0 ? "runtime" : "data");
		c->null = file == 0;
		break;
	case HR_KERNEL_RECORDS_file_id:
		hr__cell_nonzero(c, names->hash[file]);
		break;
	default:
		hr__cell_mount(st, names->mount[file], column == HR_KERNEL_RECORDS_fs_type, c);
	}
}

static const size_t kernel_sums[HR_KERNEL_RECORDS_END] = {
#define S(name) [HR_KERNEL_RECORDS_##name] = offsetof(Headrace__KernelRecord, name)
    S(count), S(bytes), S(errors), S(dur_ns)
#undef S
};

static void kernel_records_cell(const struct hr_rows *rows, size_t row, unsigned column,
				struct hr_cell *c)
{
	size_t n;
	const struct hr_sums_entry *e = hr_sums_run(rows, row, &n);
	const Headrace__KernelRecord *first = e->msg;
	const struct hr_op_info *op = hr_op_info((uint16_t)first->op);

	if (kernel_sums[column] != 0) {
		c->u = hr_sums_total(e, n, kernel_sums[column]);
		return;
	}
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
		file_cell(rows->st, first->file, column, c);
	}
}

const struct hr_row_kind hr__kernel_records_kind = {
    .table = HR_TABLE_KERNEL_RECORDS,
    .gather = kernel_records_gather,
    .done = hr_sums_done,
    .proc = hr_sums_proc,
    .cell = kernel_records_cell,
};

/* SPDX-License-Identifier: Apache-2.0 */
/* The table `file_records`: the operations of each process on each file, for each API. */
#include "query/tables/sums.h"
#include "common/ops.h"

/* The key of a row: process, file, API. */
static int file_records_gather(struct hr_rows *rows, uint64_t want)
{
	struct hr_query_sums *s;
	int r = hr_sums_new(rows, HEADRACE__FRAME__BODY_FILE_RECORDS, &s);

	for (size_t i = 0; r == 0 && i < s->frames.n; i++) {
		const Headrace__FileRecords *batch = s->frames.list[i]->file_records;

		for (size_t k = 0; r == 0 && k < batch->n_rows; k++) {
			const Headrace__FileRecord *row = batch->rows[k];

			r = hr_sums_add(s, row->proc, row->file, row->api, row);
		}
	}
	if (r == 0 && s->n > 0)
		r = hr__file_names(rows, want, HR_TABLE_FILE_RECORDS);
	return r == 0 ? hr_sums_group(rows) : r;
}

static uint32_t file_records_file(const struct hr_rows *rows, size_t row)
{
	const Headrace__FileRecord *first = hr_sums_first(rows, row);

	return hr_stream_file_number(rows->st->s, first->file);
}

static void file_records_cell(const struct hr_rows *rows, size_t row, unsigned column,
			      struct hr_cell *c)
{
	const Headrace__FileRecord *first = hr_sums_first(rows, row);

	(void)column; /* api */
	hr_cell_constant(c, hr_api_name(first->api));
}

const struct hr_row_kind hr__file_records_kind = {
    .table = HR_TABLE_FILE_RECORDS,
    .many = true,
    .gather = file_records_gather,
    .done = hr_sums_done,
    .proc = hr_sums_proc,
    .row = hr_sums_first,
    .file = file_records_file,
    .cell = file_records_cell,
};

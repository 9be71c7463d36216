/* SPDX-License-Identifier: Apache-2.0 */
/* The table `file_records`: the operations of each process on each file, for each API. */
#include "query/tables/sums.h"
#include "common/ops.h"

/* The key of a row: process, file, API. */
static int file_records_gather(struct hr_rows *rows, uint64_t want)
{
	struct hr_query_sums *s;
	unsigned names = 0;
	int r = hr_sums_new(rows, HEADRACE__FRAME__BODY_FILE_RECORDS, &s);

	for (size_t i = 0; r == 0 && i < s->frames.n; i++) {
		const Headrace__FileRecords *batch = s->frames.list[i]->file_records;

		for (size_t k = 0; r == 0 && k < batch->n_rows; k++) {
			const Headrace__FileRecord *row = batch->rows[k];

			r = hr_sums_add(s, row->proc, row->file, row->api, row);
		}
	}
	if (HR_WANTS(want, HR_FILE_RECORDS_path))
		names |= HR_NAMES_PATH;
	if (HR_WANTS(want, HR_FILE_RECORDS_pattern))
		names |= HR_NAMES_PATTERN;
	if (HR_WANTS(want, HR_FILE_RECORDS_file_id) || HR_WANTS(want, HR_FILE_RECORDS_scope) ||
	    HR_WANTS(want, HR_FILE_RECORDS_mount))
		names |= HR_NAMES_INFO;
	if (r == 0 && s->n > 0)
		r = hr__names_need(rows->q, rows->st, names);
	return r == 0 ? hr_sums_group(rows) : r;
}

static void file_cell(const struct hr_qstream *st, uint32_t id, unsigned column, struct hr_cell *c)
{
	const struct hr_query_names *names = &st->names;
	uint32_t file = hr_stream_file_number(st->s, id);

	switch (column) {
	case HR_FILE_RECORDS_path:
		hr__cell_text(c, names->path[file]);
		break;
	case HR_FILE_RECORDS_pattern:
		c->null = names->pattern[file] == 0;
		if (!c->null)
			c->s = names->patterns[names->pattern[file]];
		break;
	case HR_FILE_RECORDS_scope:
		hr_cell_constant(c, names->scope[file] != 0 ? "runtime" : "data");
		break;
	case HR_FILE_RECORDS_mount:
		hr__cell_mount(st, names->mount[file], false, c);
		break;
	default:
		hr__cell_nonzero(c, names->hash[file]);
	}
}

/* Columns that are sums, and the offset of each in the message. */
static const size_t file_sums[HR_FILE_RECORDS_END] = {
#define S(name) [HR_FILE_RECORDS_##name] = offsetof(Headrace__FileRecord, name)
    S(opens),	  S(reads),	   S(writes),	     S(seeks),	     S(stats),	       S(syncs),
    S(meta_ops),  S(bytes_read),   S(bytes_written), S(read_ns),     S(write_ns),      S(meta_ns),
    S(seq_reads), S(consec_reads), S(seq_writes),    S(rw_switches), S(consec_writes), S(unaligned),
#undef S
};

static void file_records_cell(const struct hr_rows *rows, size_t row, unsigned column,
			      struct hr_cell *c)
{
	size_t n;
	const struct hr_sums_entry *e = hr_sums_run(rows, row, &n);
	const Headrace__FileRecord *first = e->msg;

	if (file_sums[column] != 0) {
		c->u = hr_sums_total(e, n, file_sums[column]);
		return;
	}
	switch (column) {
	case HR_FILE_RECORDS_api:
		hr_cell_constant(c, hr_api_name(first->api));
		break;
	case HR_FILE_RECORDS_max_read_ns:
		c->u = hr_sums_max(e, n, offsetof(Headrace__FileRecord, max_read_ns));
		break;
	case HR_FILE_RECORDS_max_write_ns:
		c->u = hr_sums_max(e, n, offsetof(Headrace__FileRecord, max_write_ns));
		break;
	case HR_FILE_RECORDS_first_ns:
		hr__cell_wall(c, rows->st,
			      hr_sums_min(e, n, offsetof(Headrace__FileRecord, first_ns)));
		break;
	case HR_FILE_RECORDS_last_ns:
		hr__cell_wall(c, rows->st,
			      hr_sums_max(e, n, offsetof(Headrace__FileRecord, last_ns)));
		break;
	case HR_FILE_RECORDS_read_size_hist:
	case HR_FILE_RECORDS_write_size_hist:
		for (size_t i = 0; i < n; i++) {
			const Headrace__FileRecord *m = e[i].msg;

			if (column == HR_FILE_RECORDS_read_size_hist)
				hr__hist_add(c->hist, m->read_size_hist, m->n_read_size_hist);
			else
				hr__hist_add(c->hist, m->write_size_hist, m->n_write_size_hist);
		}
		break;
	default:
		file_cell(rows->st, first->file, column, c);
	}
}

const struct hr_row_kind hr__file_records_kind = {
    .table = HR_TABLE_FILE_RECORDS,
    .many = true,
    .gather = file_records_gather,
    .done = hr_sums_done,
    .proc = hr_sums_proc,
    .cell = file_records_cell,
};

/* SPDX-License-Identifier: Apache-2.0 */
/* The table `files`: a row for each file of a stream. Its times come from file records. */
#include <errno.h>
#include <stdlib.h>

#include "query/tables/rows.h"

struct files {
	uint32_t *numbers;
	/* indexed by file number; NULL: the statement does not read them */
	uint64_t *first_ns, *last_ns;
};

static void files_done(struct hr_rows *rows)
{
	struct files *f = rows->data;

	if (f == NULL)
		return;
	free(f->numbers);
	free(f->first_ns);
	free(f->last_ns);
	free(f);
}

static void files_note(struct files *f, const struct hr_stream *s, const Headrace__FileRecord *r)
{
	uint32_t i = hr_stream_file_number(s, r->file);

	if (r->first_ns != 0 && (f->first_ns[i] == 0 || r->first_ns < f->first_ns[i]))
		f->first_ns[i] = r->first_ns;
	if (r->last_ns > f->last_ns[i])
		f->last_ns[i] = r->last_ns;
}

static int read_times(struct hr_rows *rows, struct files *f)
{
	uint32_t n = rows->st->names.n;
	struct hr_frames frames;
	int r;

	f->first_ns = calloc(n, sizeof(*f->first_ns));
	f->last_ns = calloc(n, sizeof(*f->last_ns));
	if (f->first_ns == NULL || f->last_ns == NULL)
		return -ENOMEM;
	r = hr_frames_read(rows->q, rows->st, HEADRACE__FRAME__BODY_FILE_RECORDS, &frames);
	if (r < 0)
		return r;
	for (size_t i = 0; i < frames.n; i++) {
		const Headrace__FileRecords *batch = frames.list[i]->file_records;

		for (size_t k = 0; k < batch->n_rows; k++)
			files_note(f, rows->st->s, batch->rows[k]);
	}
	hr_frames_free(&frames);
	return 0;
}

static int files_gather(struct hr_rows *rows, uint64_t want)
{
	const struct hr_query_names *names = &rows->st->names;
	struct files *f = calloc(1, sizeof(*f));
	int r;

	rows->data = f;
	if (f == NULL)
		return -ENOMEM;
	r = hr__names_need(rows->q, rows->st, HR_NAMES_INFO);
	if (r == 0)
		r = hr__file_names(rows, want, HR_TABLE_FILES);
	if (r == 0 && (HR_WANTS(want, HR_FILES_first_ns) || HR_WANTS(want, HR_FILES_last_ns)))
		r = read_times(rows, f);
	if (r < 0)
		return r;
	f->numbers = malloc(names->n * sizeof(*f->numbers));
	if (f->numbers == NULL)
		return -ENOMEM;
	for (uint32_t i = 1; i < names->n; i++) {
		if (names->hash[i] != 0)
			f->numbers[rows->n++] = i;
	}
	return 0;
}

static uint32_t files_file(const struct hr_rows *rows, size_t row)
{
	const struct files *f = rows->data;

	return f->numbers[row];
}

static void files_cell(const struct hr_rows *rows, size_t row, unsigned column, struct hr_cell *c)
{
	const struct files *f = rows->data;
	const uint64_t *times = column == HR_FILES_first_ns ? f->first_ns : f->last_ns;

	hr__cell_wall(c, rows->st, times[f->numbers[row]]);
}

const struct hr_row_kind hr__files_kind = {
    .table = HR_TABLE_FILES,
    .gather = files_gather,
    .done = files_done,
    .file = files_file,
    .cell = files_cell,
};

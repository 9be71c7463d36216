/* SPDX-License-Identifier: Apache-2.0 */
/* Makes the frames of a stream. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "import/internal.h"

#define RECORDS_AT_ONCE 1024u

int hr__istream_send(struct hr_import_stream *s, Headrace__Frame *frame, bool compress)
{
	Headrace__Clock clock = HEADRACE__CLOCK__INIT;
	uint8_t *buf;
	size_t bytes;
	int r;

	clock.boot_ns = s->last_ns;
	clock.real_ns = s->last_ns + (uint64_t)s->clock_ns; /* readers use the last one */
	clock.error_ns = s->into.error_ns;
	frame->clock = &clock;
	frame->seq = hr_writer_mark(s->writer) + 1;
	r = hr_frame_pack(frame, compress, &buf, &bytes);
	if (!r) {
		r = hr_writer_append_packed(s->writer, frame, buf, bytes);
		free(buf);
	}
	frame->clock = NULL; /* the caller's frame outlives `clock` */
	return r;
}

/* ---- names ----------------------------------------------------------------------------------- */

int hr__istream_send_paths(struct hr_import_stream *s)
{
	Headrace__Paths m = HEADRACE__PATHS__INIT;
	struct hr_arena arena = {0};
	Headrace__Path *rows;
	int r;

	if (!s->n_fresh)
		return 0;
	rows = hr_rows_in(&arena, s->n_fresh, sizeof(*rows), &m.rows);
	for (uint32_t i = 0; i < s->n_fresh && rows; i++) {
		const struct hr__fresh_path *f = &s->fresh[i];
		Headrace__Path *row = &rows[m.n_rows++];

		headrace__path__init(row);
		row->id = f->id;
		row->hash = f->hash;
		row->path = (ProtobufCBinaryData){f->bytes, (uint8_t *)(uintptr_t)f->text};
		row->scope = s->files[f->id - 1].scope;
	}
	r = rows ? hr__istream_send_body(s, PATHS, paths, &m, true) : -ENOMEM;
	hr_arena_free(&arena);
	hr_arena_free(&s->texts);
	s->n_fresh = 0;
	s->fresh_bytes = 0;
	return r;
}

/* ---- operations and regions ------------------------------------------------------------------ */

int hr__istream_send_batch(struct hr_import_stream *s)
{
	struct hr__istream_batch *b = s->batch;
	Headrace__EventBatch m;
	int r = hr__istream_send_paths(s);

	if (r || !b->n)
		return r;
	r = hr_batch_encode(s->encoder, b->events, b->n, b->tasks, b->n_tasks, &m);
	if (!r) /* the columns are compressed */
		r = hr__istream_send_body(s, EVENTS, events, &m, false);
	b->n = b->n_tasks = 0;
	s->batch_number++;
	return r;
}

int hr__istream_send_regions(struct hr_import_stream *s)
{
	const Headrace__Regions *m;
	int r;

	if (!s->regions || !hr_regions_count(s->regions))
		return 0;
	m = hr_regions_message(s->regions);
	r = hr__istream_send_body(s, REGIONS, regions, (Headrace__Regions *)(uintptr_t)m, true);
	hr_regions_reset(s->regions);
	s->region_bytes = 0;
	return r;
}

/* ---- sums ------------------------------------------------------------------------------------ */

static int send_window(struct hr_import_stream *s, uint64_t window)
{
	uint32_t from = 0;
	int r = 0;

	while (from < s->rollups.n && !r) {
		Headrace__RollupBatch m = HEADRACE__ROLLUP_BATCH__INIT;
		struct hr_arena arena = {0};

		from = hr_rollups_message(&arena, &s->rollups, window, from, &m);
		r = arena.failed ? -ENOMEM : hr__istream_send_body(s, ROLLUPS, rollups, &m, true);
		hr_arena_free(&arena);
	}
	return r;
}

int hr__istream_send_rollups(struct hr_import_stream *s, uint64_t up_to_window)
{
	int r = 0;

	while (s->rollups.n && s->rollups.oldest <= up_to_window && !r) {
		uint64_t window = s->rollups.oldest;

		r = send_window(s, window);
		hr_rollups_drop(&s->rollups, window);
	}
	return r;
}

static int send_records(struct hr_import_stream *s, const uint32_t *indexes, size_t n)
{
	Headrace__FileRecords m = HEADRACE__FILE_RECORDS__INIT;
	struct hr_arena arena = {0};
	Headrace__FileRecord *rows = hr_rows_in(&arena, n, sizeof(*rows), &m.rows);
	int r;

	for (size_t i = 0; i < n && rows; i++) {
		const struct hr_filerec *record = &s->records.v[indexes[i]];

		if (record->dirty)
			hr_filerec_message(&arena, record, &rows[m.n_rows++]);
	}
	r = arena.failed ? -ENOMEM : 0;
	if (!r && m.n_rows)
		r = hr__istream_send_body(s, FILE_RECORDS, file_records, &m, true);
	hr_arena_free(&arena);
	return r;
}

/* Sends the file records that the reader has added as they are. */
int hr__istream_send_given(struct hr_import_stream *s)
{
	Headrace__FileRecords m = HEADRACE__FILE_RECORDS__INIT;
	int r = 0;

	m.n_rows = s->n_given;
	m.rows = s->given;
	if (s->n_given)
		r = hr__istream_send_body(s, FILE_RECORDS, file_records, &m, true);
	s->n_given = 0;
	hr_arena_free(&s->given_memory);
	return r;
}

/* Finds all records, of open files, too. */
static uint32_t records_all(const struct hr_filerecs *f, uint32_t *indexes, uint32_t max)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < f->n && n < max; i++)
		if (f->v[i].t.proc)
			indexes[n++] = i;
	return n;
}

int hr__istream_send_records(struct hr_import_stream *s, bool all)
{
	uint32_t indexes[RECORDS_AT_ONCE], n;
	int r = 0;

	do {
		n = all ? records_all(&s->records, indexes, RECORDS_AT_ONCE)
			: hr_filerecs_due(&s->records, s->last_ns, indexes, RECORDS_AT_ONCE);
		if (n)
			r = send_records(s, indexes, n);
		for (uint32_t i = 0; i < n; i++)
			hr_filerec_remove(&s->records, indexes[i]);
	} while (n == RECORDS_AT_ONCE && !r);
	return r;
}

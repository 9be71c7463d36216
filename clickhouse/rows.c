/* SPDX-License-Identifier: Apache-2.0 */
#include "clickhouse/rows.h"

#include <errno.h>
#include <stdlib.h>

#include "common/region.h"
#include "common/rows.h"

/* One frame, while its rows are added. */
struct frame_rows {
	struct hr_ch_rows *rows;
	const struct hr_ch_origin *origin;
	uint64_t seq;
};

/* Begins one row of a table. The caller adds all its columns. */
static struct hr_ch_block *row_of(const struct frame_rows *f, enum hr_ch_table table)
{
	struct hr_ch_block *b = &f->rows->blocks[table];

	hr_ch_rows_begin(b, f->origin, f->seq, 1);
	return b;
}

static uint64_t wall_ns(const struct hr_ch_origin *o, uint64_t boot_ns)
{
	return boot_ns == 0 ? 0 : boot_ns + (uint64_t)o->real_minus_boot_ns;
}

void hr_ch_rows_begin(struct hr_ch_block *b, const struct hr_ch_origin *o, uint64_t seq, size_t n)
{
	hr_ch_block_repeat_number(b, HR_CH_day, o->day, n);
	hr_ch_block_repeat_text(b, HR_CH_cluster, o->cluster, n);
	hr_ch_block_repeat_text(b, HR_CH_job, o->job, n);
	hr_ch_block_repeat_number(b, HR_CH_attempt, o->attempt, n);
	hr_ch_block_repeat_text(b, HR_CH_node, o->node, n);
	hr_ch_block_repeat_number(b, HR_CH_stream, o->stream, n);
	hr_ch_block_repeat_number(b, HR_CH_generation, o->generation, n);
	hr_ch_block_repeat_number(b, HR_CH_seq, seq, n);
	hr_ch_block_repeat_number(b, HR_CH_uid, (uint64_t)o->uid, n);
	b->rows += n;
}

/* ---- events ---- */

/* Copies a decoded column. */
#define EVENTS(b, name, from, n)                                                                   \
	do {                                                                                       \
		void *to = hr_ch_block_values(b, HR_CH_events_##name, n, sizeof(*(from)));         \
                                                                                                   \
		if (to)                                                                            \
			memcpy(to, from, (n) * sizeof(*(from)));                                   \
	} while (0)

/* Adds the columns that are computed: process and thread, wall clock. */
static void add_computed(struct hr_ch_block *b, const struct hr_ch_origin *o,
			 const struct hr_columns *c)
{
	size_t n = c->count;
	uint64_t *proc = hr_ch_block_values(b, HR_CH_events_proc, n, sizeof(*proc));
	uint32_t *tid = hr_ch_block_values(b, HR_CH_events_tid, n, sizeof(*tid));
	uint64_t *start_ns = hr_ch_block_values(b, HR_CH_events_start_ns, n, sizeof(*start_ns));

	if (b->failed)
		return;
	for (size_t i = 0; i < n; i++) {
		const struct hr_task *t = &c->tasks[c->task[i]];

		proc[i] = t->proc;
		tid[i] = t->tid;
		start_ns[i] = c->start_ns[i] + (uint64_t)o->real_minus_boot_ns;
	}
}

static int add_events(const struct frame_rows *f, const Headrace__EventBatch *m)
{
	struct hr_ch_block *b = &f->rows->blocks[HR_CH_TABLE_events];
	struct hr_columns c;
	int r = hr_batch_decode(f->rows->decoder, m, HR_COL_ALL, &c);
	size_t n = r == 0 ? c.count : 0;

	if (r < 0 || n == 0)
		return r;
	hr_ch_rows_begin(b, f->origin, f->seq, n);
	EVENTS(b, op_id, c.op, n);
	EVENTS(b, bits, c.bits, n);
	EVENTS(b, file, c.file, n);
	EVENTS(b, file2, c.file2, n);
	EVENTS(b, fd, c.fd, n);
	EVENTS(b, flags, c.flags, n);
	EVENTS(b, file_offset, c.offset, n);
	EVENTS(b, asked, c.asked, n);
	EVENTS(b, result, c.ret, n);
	EVENTS(b, dur_ns, c.dur_ns, n);
	add_computed(b, f->origin, &c);
	return 0;
}

/* ---- other tables ---- */

static void add_bytes(struct hr_ch_block *b, unsigned column, ProtobufCBinaryData bytes)
{
	hr_ch_block_escaped(b, column, bytes.data, bytes.len);
}

/* fill_<table>() begins a row of `m`, and adds all columns but those that tables.def calls MADE. */
#define ADD_NUMBER(member) hr_ch_block_number(b, column, (uint64_t)m->member)
#define ADD_PLUS1(member)  hr_ch_block_number(b, column, (uint64_t)((int64_t)m->member - 1))
#define ADD_TIME(member)   hr_ch_block_number(b, column, wall_ns(f->origin, m->member))
#define ADD_TEXT(member)                                                                           \
	_Generic(m->member, char *: hr_ch_block_string, ProtobufCBinaryData: add_bytes)(           \
	    b, column, m->member)
#define ADD_LIST(member) hr_ch_block_list(b, column, m->member, m->n_##member & ~(size_t)1)
#define ADD_MADE	 (void)column

/* clang-format off */
#define HR_TABLE(table, row, key)                                                                  \
	__attribute__((unused)) static struct hr_ch_block *fill_##table(                           \
	    const struct frame_rows *f, const row *m)                                              \
	{                                                                                          \
		struct hr_ch_block *b = row_of(f, HR_CH_TABLE_##table);                            \
		unsigned column;                                                                   \
		(void)m;
#define HR_COLUMN(table, name, type, from)                                                         \
		column = HR_CH_##table##_##name;                                                   \
		ADD_##from;
#define HR_END(table)                                                                              \
		return b;                                                                          \
	}
#include "clickhouse/tables.def"
/* clang-format on */

static void add_rollup(const struct frame_rows *f, uint64_t window_ns, const Headrace__Rollup *m,
		       bool side)
{
	struct hr_ch_block *b = fill_rollups(f, m);

	hr_ch_block_number(b, HR_CH_rollups_window_start_ns, wall_ns(f->origin, window_ns));
	hr_ch_block_number(b, HR_CH_rollups_side_id, side ? m->op : 0);
	hr_ch_block_number(b, HR_CH_rollups_op_id, side ? 0 : m->op);
}

static void add_rollups(const struct frame_rows *f, const Headrace__RollupBatch *m)
{
	for (size_t i = 0; i < m->n_rows; i++)
		add_rollup(f, m->window_start_ns, m->rows[i], false);
	for (size_t i = 0; i < m->n_sides; i++)
		add_rollup(f, m->window_start_ns, m->sides[i], true);
}

static void add_region_text(struct hr_ch_block *b, unsigned column, const Headrace__Regions *m,
			    uint32_t number)
{
	if (number == 0)
		hr_ch_block_text(b, column, "", 0);
	else
		add_bytes(b, column, m->texts[number - 1]);
}

static int add_regions(const struct frame_rows *f, Headrace__Regions *m)
{
	int r = hr_regions_restore(m);

	for (size_t i = 0; r == 0 && i < m->n_key; i++) {
		struct hr_region g;
		struct hr_ch_block *b;

		hr_regions_get(m, i, &g);
		b = fill_regions(f, &g);
		add_region_text(b, HR_CH_regions_domain, m, g.domain);
		add_region_text(b, HR_CH_regions_category, m, g.category);
		add_region_text(b, HR_CH_regions_name, m, g.name);
		add_region_text(b, HR_CH_regions_args, m, g.args);
	}
	return r;
}

static void add_process(const struct frame_rows *f, const Headrace__Process *m)
{
	struct hr_ch_block *b = fill_processes(f, m);
	uint64_t opens = 0;
	char *excluded = hr_excluded_text(m, &opens);

	hr_ch_block_number(b, HR_CH_processes_excluded_opens, opens);
	hr_ch_block_string(b, HR_CH_processes_excluded, excluded);
	b->failed |= !excluded;
	free(excluded);
}

static void add_job(const struct frame_rows *f, const Headrace__JobEvent *m)
{
	struct hr_ch_block *b = fill_job_events(f, m);

	hr_ch_block_text(b, HR_CH_job_events_finish, "", 0);
	hr_ch_block_number(b, HR_CH_job_events_by_node, f->origin->by_node);
	for (size_t i = 0; i < m->n_labels; i++)
		fill_labels(f, m->labels[i]);
}

/* The end of a recording is a row of job_events in which only `finish` is known. */
static void add_end(const struct frame_rows *f, const Headrace__StreamEnd *m)
{
	struct hr_ch_block *b = row_of(f, HR_CH_TABLE_job_events);

	for (unsigned i = HR_CH_COMMON; i < HR_CH_job_events_columns; i++) {
		if (i == HR_CH_job_events_finish)
			hr_ch_block_string(b, i, m->state);
		else if (hr_ch_column(b->table, i)->type == HR_CH_TEXT)
			hr_ch_block_text(b, i, "", 0);
		else
			hr_ch_block_number(b, i, 0);
	}
}

/* ---- frames ---- */

static void add_frame(const struct frame_rows *f, const Headrace__Frame *msg, const uint8_t *packed,
		      size_t bytes, int64_t stored_ns)
{
	struct hr_ch_block *b = row_of(f, HR_CH_TABLE_frames);

	hr_ch_block_number(b, HR_CH_frames_kind_id, (uint64_t)msg->body_case);
	hr_ch_block_number(b, HR_CH_frames_stored_ns, (uint64_t)stored_ns);
	hr_ch_block_text(b, HR_CH_frames_frame, packed, bytes);
}

static int add_body(const struct frame_rows *f, Headrace__Frame *msg)
{
	switch (msg->body_case) {
	case HEADRACE__FRAME__BODY_EVENTS:
		return add_events(f, msg->events);
	case HEADRACE__FRAME__BODY_REGIONS:
		return add_regions(f, msg->regions);
	case HEADRACE__FRAME__BODY_ROLLUPS:
		add_rollups(f, msg->rollups);
		break;
	case HEADRACE__FRAME__BODY_FILE_RECORDS:
		for (size_t i = 0; i < msg->file_records->n_rows; i++)
			fill_file_records(f, msg->file_records->rows[i]);
		break;
	case HEADRACE__FRAME__BODY_KERNEL_RECORDS:
		for (size_t i = 0; i < msg->kernel_records->n_rows; i++)
			fill_kernel_records(f, msg->kernel_records->rows[i]);
		break;
	case HEADRACE__FRAME__BODY_PATHS:
		for (size_t i = 0; i < msg->paths->n_rows; i++)
			fill_paths(f, msg->paths->rows[i]);
		for (size_t i = 0; i < msg->paths->n_mounts; i++)
			fill_mounts(f, msg->paths->mounts[i]);
		break;
	case HEADRACE__FRAME__BODY_PROCESSES:
		for (size_t i = 0; i < msg->processes->n_rows; i++)
			add_process(f, msg->processes->rows[i]);
		break;
	case HEADRACE__FRAME__BODY_LOSS:
		for (size_t i = 0; i < msg->loss->n_rows; i++)
			fill_losses(f, msg->loss->rows[i]);
		break;
	case HEADRACE__FRAME__BODY_JOB:
		add_job(f, msg->job);
		break;
	case HEADRACE__FRAME__BODY_LEVELS:
		fill_levels(f, msg->levels);
		break;
	case HEADRACE__FRAME__BODY_STREAM_END:
		add_end(f, msg->stream_end);
		break;
	default: /* of a later version: `frames` has it */
		break;
	}
	return 0;
}

static bool any_failed(const struct hr_ch_rows *r)
{
	bool failed = false;

	for (unsigned i = 0; i < HR_CH_TABLES; i++)
		failed |= r->blocks[i].failed;
	return failed;
}

int hr_ch_rows_add(struct hr_ch_rows *r, struct hr_ch_origin *o, Headrace__Frame *msg,
		   const uint8_t *packed, size_t bytes, int64_t stored_ns)
{
	struct frame_rows f = {.rows = r, .origin = o, .seq = msg->seq};
	int result;

	if (o->real_minus_boot_ns == 0 && msg->clock && msg->clock->real_ns > 0)
		o->real_minus_boot_ns = (int64_t)(msg->clock->real_ns - msg->clock->boot_ns);
	add_frame(&f, msg, packed, bytes, stored_ns);
	result = add_body(&f, msg);
	return any_failed(r) ? -ENOMEM : result;
}

size_t hr_ch_rows_count(const struct hr_ch_rows *r)
{
	size_t rows = 0;

	for (unsigned i = 0; i < HR_CH_TABLES; i++)
		rows += r->blocks[i].rows;
	return rows;
}

size_t hr_ch_rows_bytes(const struct hr_ch_rows *r)
{
	size_t bytes = 0;

	for (unsigned i = 0; i < HR_CH_TABLES; i++)
		bytes += hr_ch_block_bytes(&r->blocks[i]);
	return bytes;
}

int hr_ch_rows_init(struct hr_ch_rows *r)
{
	for (unsigned i = 0; i < HR_CH_TABLES; i++)
		hr_ch_block_init(&r->blocks[i], i);
	return hr_decoder_new(&r->decoder);
}

void hr_ch_rows_done(struct hr_ch_rows *r)
{
	for (unsigned i = 0; i < HR_CH_TABLES; i++)
		hr_ch_block_done(&r->blocks[i]);
	hr_decoder_free(r->decoder);
}

void hr_ch_rows_clear(struct hr_ch_rows *r)
{
	for (unsigned i = 0; i < HR_CH_TABLES; i++)
		hr_ch_block_clear(&r->blocks[i]);
}

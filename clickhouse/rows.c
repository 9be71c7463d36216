/* SPDX-License-Identifier: Apache-2.0 */
#include "clickhouse/rows.h"

#include <errno.h>

#include "common/region.h"

/* One frame, while its rows are added. */
struct frame_rows {
	struct hr_ch_rows *rows;
	const struct hr_ch_origin *origin;
	uint64_t seq;
};

/* Begins one row of a table. Each row below then sets all columns of the table. */
static struct hr_ch_block *row_of(const struct frame_rows *f, enum hr_ch_table table)
{
	struct hr_ch_block *b = &f->rows->blocks[table];

	hr_ch_rows_begin(b, f->origin, f->seq, 1);
	return b;
}

/* Sets a column of a row from the member of a message with the same name. */
#define NUMBER(b, table, m, name) hr_ch_block_number(b, HR_CH_##table##_##name, (uint64_t)(m)->name)
#define ID(b, table, m, name)	  hr_ch_block_number(b, HR_CH_##table##_##name##_id, (m)->name)
#define STRING(b, table, m, name) hr_ch_block_string(b, HR_CH_##table##_##name, (m)->name)
#define BYTES(b, table, m, name)                                                                   \
	hr_ch_block_escaped(b, HR_CH_##table##_##name, (m)->name.data, (m)->name.len)
#define HIST(b, table, m, name)                                                                    \
	hr_ch_block_list(b, HR_CH_##table##_##name, (m)->name, (m)->n_##name & ~(size_t)1)
#define TIME(b, table, f, m, name)                                                                 \
	hr_ch_block_number(b, HR_CH_##table##_##name, wall_ns((f)->origin, (m)->name))
/* Unknown (0) becomes -1. */
#define PLUS1(b, table, m, name)                                                                   \
	hr_ch_block_number(b, HR_CH_##table##_##name, (uint64_t)((int64_t)(m)->name##_plus1 - 1))

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

/* ---- sums ---- */

static void add_rollup(const struct frame_rows *f, uint64_t window_ns, const Headrace__Rollup *m,
		       bool side)
{
	struct hr_ch_block *b = row_of(f, HR_CH_TABLE_rollups);

	hr_ch_block_number(b, HR_CH_rollups_window_start_ns, wall_ns(f->origin, window_ns));
	hr_ch_block_number(b, HR_CH_rollups_side_id, side ? m->op : 0);
	hr_ch_block_number(b, HR_CH_rollups_op_id, side ? 0 : m->op);
	NUMBER(b, rollups, m, proc);
	NUMBER(b, rollups, m, mount);
	ID(b, rollups, m, scope);
	NUMBER(b, rollups, m, count);
	NUMBER(b, rollups, m, bytes);
	NUMBER(b, rollups, m, errors);
	NUMBER(b, rollups, m, dur_ns);
	NUMBER(b, rollups, m, max_dur_ns);
	HIST(b, rollups, m, size_hist);
	HIST(b, rollups, m, dur_hist);
}

static void add_rollups(const struct frame_rows *f, const Headrace__RollupBatch *m)
{
	for (size_t i = 0; i < m->n_rows; i++)
		add_rollup(f, m->window_start_ns, m->rows[i], false);
	for (size_t i = 0; i < m->n_sides; i++)
		add_rollup(f, m->window_start_ns, m->sides[i], true);
}

static void add_file_record(const struct frame_rows *f, const Headrace__FileRecord *m)
{
	struct hr_ch_block *b = row_of(f, HR_CH_TABLE_file_records);

	NUMBER(b, file_records, m, proc);
	NUMBER(b, file_records, m, file);
	ID(b, file_records, m, api);
	NUMBER(b, file_records, m, opens);
	NUMBER(b, file_records, m, reads);
	NUMBER(b, file_records, m, writes);
	NUMBER(b, file_records, m, seeks);
	NUMBER(b, file_records, m, stats);
	NUMBER(b, file_records, m, syncs);
	NUMBER(b, file_records, m, meta_ops);
	NUMBER(b, file_records, m, bytes_read);
	NUMBER(b, file_records, m, bytes_written);
	NUMBER(b, file_records, m, read_ns);
	NUMBER(b, file_records, m, write_ns);
	NUMBER(b, file_records, m, meta_ns);
	NUMBER(b, file_records, m, max_read_ns);
	NUMBER(b, file_records, m, max_write_ns);
	TIME(b, file_records, f, m, first_ns);
	TIME(b, file_records, f, m, last_ns);
	NUMBER(b, file_records, m, seq_reads);
	NUMBER(b, file_records, m, consec_reads);
	NUMBER(b, file_records, m, seq_writes);
	NUMBER(b, file_records, m, consec_writes);
	NUMBER(b, file_records, m, rw_switches);
	NUMBER(b, file_records, m, unaligned);
	HIST(b, file_records, m, read_size_hist);
	HIST(b, file_records, m, write_size_hist);
}

static void add_kernel_record(const struct frame_rows *f, const Headrace__KernelRecord *m)
{
	struct hr_ch_block *b = row_of(f, HR_CH_TABLE_kernel_records);

	NUMBER(b, kernel_records, m, proc);
	NUMBER(b, kernel_records, m, file);
	ID(b, kernel_records, m, op);
	ID(b, kernel_records, m, cause);
	NUMBER(b, kernel_records, m, count);
	NUMBER(b, kernel_records, m, bytes);
	NUMBER(b, kernel_records, m, errors);
	NUMBER(b, kernel_records, m, dur_ns);
}

static void add_loss(const struct frame_rows *f, const Headrace__LossRow *m)
{
	struct hr_ch_block *b = row_of(f, HR_CH_TABLE_losses);

	NUMBER(b, losses, m, proc);
	STRING(b, losses, m, reason);
	ID(b, losses, m, op);
	NUMBER(b, losses, m, count);
	NUMBER(b, losses, m, bytes);
	NUMBER(b, losses, m, dur_ns);
}

/* ---- regions ---- */

static void add_region_text(struct hr_ch_block *b, unsigned column, const Headrace__Regions *m,
			    uint32_t number)
{
	if (number == 0)
		hr_ch_block_text(b, column, "", 0);
	else
		hr_ch_block_escaped(b, column, m->texts[number - 1].data, m->texts[number - 1].len);
}

static void add_region(const struct frame_rows *f, const Headrace__Regions *m, size_t i)
{
	struct hr_ch_block *b = row_of(f, HR_CH_TABLE_regions);
	struct hr_region region, *g = &region;

	hr_regions_get(m, i, g);
	NUMBER(b, regions, g, proc);
	NUMBER(b, regions, g, tid);
	ID(b, regions, g, kind);
	add_region_text(b, HR_CH_regions_domain, m, g->domain);
	add_region_text(b, HR_CH_regions_category, m, g->category);
	add_region_text(b, HR_CH_regions_name, m, g->name);
	add_region_text(b, HR_CH_regions_args, m, g->args);
	NUMBER(b, regions, g, depth);
	NUMBER(b, regions, g, open);
	NUMBER(b, regions, g, count);
	TIME(b, regions, f, g, start_ns);
	NUMBER(b, regions, g, dur_ns);
	NUMBER(b, regions, g, step); /* HR_REGION_UNKNOWN is -1 */
	NUMBER(b, regions, g, epoch);
}

static int add_regions(const struct frame_rows *f, Headrace__Regions *m)
{
	int r = hr_regions_restore(m);

	for (size_t i = 0; r == 0 && i < m->n_key; i++)
		add_region(f, m, i);
	return r;
}

/* ---- names ---- */

static void add_path(const struct frame_rows *f, const Headrace__Path *m)
{
	struct hr_ch_block *b = row_of(f, HR_CH_TABLE_paths);

	hr_ch_block_number(b, HR_CH_paths_file, m->id);
	NUMBER(b, paths, m, hash);
	BYTES(b, paths, m, path);
	NUMBER(b, paths, m, mount);
	ID(b, paths, m, scope);
}

static void add_mount(const struct frame_rows *f, const Headrace__Mount *m)
{
	struct hr_ch_block *b = row_of(f, HR_CH_TABLE_mounts);

	hr_ch_block_number(b, HR_CH_mounts_mount, m->id);
	BYTES(b, mounts, m, path);
	STRING(b, mounts, m, fs_type);
}

static void add_process(const struct frame_rows *f, const Headrace__Process *m)
{
	struct hr_ch_block *b = row_of(f, HR_CH_TABLE_processes);

	NUMBER(b, processes, m, proc);
	NUMBER(b, processes, m, pid);
	NUMBER(b, processes, m, ppid);
	NUMBER(b, processes, m, parent_proc);
	BYTES(b, processes, m, exe);
	BYTES(b, processes, m, cmdline);
	NUMBER(b, processes, m, exec_of);
	TIME(b, processes, f, m, start_ns);
	TIME(b, processes, f, m, end_ns);
	STRING(b, processes, m, exit);
	PLUS1(b, processes, m, rank);
	PLUS1(b, processes, m, local_rank);
	NUMBER(b, processes, m, world_size);
	PLUS1(b, processes, m, worker);
	PLUS1(b, processes, m, loader);
	PLUS1(b, processes, m, loader_worker);
	PLUS1(b, processes, m, restart);
	NUMBER(b, processes, m, cpu_quota_milli);
	hr_ch_block_number(b, HR_CH_processes_process_uid, m->uid);
}

/* ---- jobs ---- */

static void add_job(const struct frame_rows *f, const Headrace__JobEvent *m)
{
	struct hr_ch_block *b = row_of(f, HR_CH_TABLE_job_events);

	STRING(b, job_events, m, state);
	hr_ch_block_string(b, HR_CH_job_events_finish, "");
	STRING(b, job_events, m, user);
	STRING(b, job_events, m, account);
	STRING(b, job_events, m, partition);
	STRING(b, job_events, m, name);
	STRING(b, job_events, m, array_job);
	STRING(b, job_events, m, array_task);
	TIME(b, job_events, f, m, start_ns);
	TIME(b, job_events, f, m, end_ns);
	NUMBER(b, job_events, m, ranks_expected);
	NUMBER(b, job_events, m, nodes_expected);
	hr_ch_block_number(b, HR_CH_job_events_by_node, f->origin->by_node);
	for (size_t i = 0; i < m->n_labels; i++) {
		b = row_of(f, HR_CH_TABLE_labels);
		STRING(b, labels, m->labels[i], key);
		STRING(b, labels, m->labels[i], value);
	}
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

static void add_levels(const struct frame_rows *f, const Headrace__Levels *m)
{
	struct hr_ch_block *b = row_of(f, HR_CH_TABLE_levels);

	STRING(b, levels, m, level);
	TIME(b, levels, f, m, start_ns);
	TIME(b, levels, f, m, end_ns);
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
			add_file_record(f, msg->file_records->rows[i]);
		break;
	case HEADRACE__FRAME__BODY_KERNEL_RECORDS:
		for (size_t i = 0; i < msg->kernel_records->n_rows; i++)
			add_kernel_record(f, msg->kernel_records->rows[i]);
		break;
	case HEADRACE__FRAME__BODY_PATHS:
		for (size_t i = 0; i < msg->paths->n_rows; i++)
			add_path(f, msg->paths->rows[i]);
		for (size_t i = 0; i < msg->paths->n_mounts; i++)
			add_mount(f, msg->paths->mounts[i]);
		break;
	case HEADRACE__FRAME__BODY_PROCESSES:
		for (size_t i = 0; i < msg->processes->n_rows; i++)
			add_process(f, msg->processes->rows[i]);
		break;
	case HEADRACE__FRAME__BODY_LOSS:
		for (size_t i = 0; i < msg->loss->n_rows; i++)
			add_loss(f, msg->loss->rows[i]);
		break;
	case HEADRACE__FRAME__BODY_JOB:
		add_job(f, msg->job);
		break;
	case HEADRACE__FRAME__BODY_LEVELS:
		add_levels(f, msg->levels);
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

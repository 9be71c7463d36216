/* SPDX-License-Identifier: Apache-2.0 */
/* Adds operations, sums and regions to a stream. */
#include <errno.h>

#include "common/array.h"
#include "import/internal.h"

#define ROLLUPS_MOST	   8192u      /* rows that are kept; older windows are written */
#define REGIONS_MOST_BYTES (8u << 20) /* texts of a frame, equal ones counted again */
#define BYTES_MOST	   (UINT64_C(1) << 50)
#define OFFSET_MOST	   (INT64_MAX / 2)
#define GIVEN_MOST	   1024u /* file records of the reader in a frame */
#define CHECK_EVENTS	   4096u /* the limits of the sums are checked after so many events */
#define WINDOWS_LEFT	   2u	 /* windows that may still get operations */

/* ---- sums ------------------------------------------------------------------------------------ */

void hr__istream_extend(struct hr_import_stream *s, uint32_t proc, uint64_t start_ns,
			uint64_t end_ns)
{
	struct hr_import_process *p = &s->processes[proc - 1];

	if (start_ns < p->first_ns)
		p->first_ns = start_ns;
	if (end_ns > p->last_ns)
		p->last_ns = end_ns;
	if (start_ns < s->first_ns)
		s->first_ns = start_ns;
	if (end_ns > s->last_ns)
		s->last_ns = end_ns;
}

static int sums_check(struct hr_import_stream *s)
{
	uint64_t window = s->last_ns / HR_WINDOW_NS;
	int r = 0;

	if (s->rollups.n > ROLLUPS_MOST && window > WINDOWS_LEFT)
		r = hr__istream_send_rollups(s, window - WINDOWS_LEFT);
	if (!r && s->rollups.n > ROLLUPS_MOST)
		r = hr__istream_send_rollups(s, UINT64_MAX);
	if (!r && hr_filerecs_full(&s->records))
		r = hr__istream_send_records(s, false);
	return r;
}

static int record_add(struct hr_import_stream *s, uint64_t proc, uint32_t file, uint32_t api,
		      const struct hr_file_op *op)
{
	uint32_t i = hr_filerec_get(&s->records, proc, file, api, &s->last_record);

	if (i == UINT32_MAX || hr_filerec_add(&s->records, i, op))
		return -ENOMEM;
	if (op->class == HR_CLASS_OPEN && !op->failed)
		hr_filerec_refs(&s->records, i, 1);
	else if (op->class == HR_CLASS_CLOSE)
		hr_filerec_refs(&s->records, i, -1);
	return 0;
}

static int side_add(struct hr_import_stream *s, uint64_t proc, uint16_t side, uint16_t scope,
		    const struct hr_file_op *op)
{
	struct hr_rollup *row = hr_rollup_row(&s->rollups, hr_rollup_window(op), proc, side, 0,
					      scope, &s->rollup_of[side]);

	if (!row)
		return -ENOMEM;
	hr_rollup_add_side(row, op);
	return 0;
}

/* Adds a copy from the first file of the event to the second. */
static int records_add_both(struct hr_import_stream *s, uint64_t proc, const struct hr_event *e,
			    uint32_t api, const struct hr_file_op *op)
{
	struct hr_file_op first, second;
	bool moves = hr_file_op_divide(op, HR_OFFSET_NONE, e->file, e->file2, &first, &second);
	int r = 0;

	if (e->file) {
		r = record_add(s, proc, e->file, api, &first);
		if (!r && moves)
			r = side_add(s, proc, HR_SIDE_COPY_READ, s->files[e->file - 1].scope,
				     &first);
	}
	if (!r && e->file2) {
		r = record_add(s, proc, e->file2, api, &second);
		if (!r && moves)
			r = side_add(s, proc, HR_SIDE_COPY_WRITE, s->files[e->file2 - 1].scope,
				     &second);
	}
	return r;
}

/* ---- operations ------------------------------------------------------------------------------ */

/* Returns the index of the thread in the open batch, which it first writes if it is full. */
static int task_find(struct hr_import_stream *s, struct hr__import_thread *t, uint32_t *ret)
{
	struct hr__istream_batch *b = s->batch;

	if (b->n >= HR_BATCH_EVENTS ||
	    (t->batch != s->batch_number && b->n_tasks >= HR_BATCH_TASKS)) {
		int r = hr__istream_send_batch(s);

		if (r)
			return r;
	}
	if (t->batch != s->batch_number) {
		t->batch = s->batch_number;
		t->task = b->n_tasks;
		b->tasks[b->n_tasks++] = (struct hr_task){t->proc, t->tid};
	}
	*ret = t->task;
	return 0;
}

static int event_add(struct hr_import_stream *s, struct hr__import_thread *t,
		     const struct hr_event *event)
{
	uint32_t task;
	int r = task_find(s, t, &task);
	struct hr_event *e;

	if (r)
		return r;
	e = &s->batch->events[s->batch->n++];
	*e = *event;
	e->task = task;
	return 0;
}

int hr_import_operation(struct hr_import_stream *s, uint32_t thread, const struct hr_event *event)
{
	const struct hr_op_info *info = &s->ops[event->op < HR_OP_MAX ? event->op : 0];
	uint64_t bytes = hr_bytes_moved(info->bytes_rule, event->ret, event->asked, event->flags);
	struct hr__import_thread *t;
	uint16_t scope = event->bits & HR_EV_SCOPE_RUNTIME;
	struct hr_file_op op = {.class = info->class,
				.failed = event->ret<0, .offset = event->offset> OFFSET_MOST
					      ? HR_OFFSET_NONE
					      : event->offset,
				.bytes = bytes == UINT64_MAX ? 0 : bytes,
				.count = 1,
				.start_ns = event->start_ns,
				.dur_ns = event->dur_ns};
	struct hr_rollup *row;
	int r = 0;

	if (s->failed || !thread)
		return s->failed ? s->failed : -ENOMEM;
	if (s->into.to) {
		s->into.n_operations++;
		return 0;
	}
	if (info->class == HR_CLASS_NONE || info->class == HR_CLASS_HOOK || op.bytes > BYTES_MOST ||
	    op.start_ns + op.dur_ns < op.start_ns)
		return -EBADMSG;
	t = &s->threads[thread - 1];
	hr__istream_extend(s, (uint32_t)t->proc, op.start_ns, op.start_ns + op.dur_ns);
	if (event->file2 || hr_op_copies(event->op))
		r = records_add_both(s, t->proc, event, info->api, &op);
	else if (event->file)
		r = record_add(s, t->proc, event->file, info->api, &op);
	row = hr_rollup_row(&s->rollups, hr_rollup_window(&op), t->proc, event->op, 0, scope,
			    &s->rollup_of[event->op]);
	if (r || !row)
		return s->failed = -ENOMEM;
	hr_rollup_add(row, &op, bytes != UINT64_MAX, op.failed && event->ret != HR_RET_NONE);
	s->moved_bytes += op.bytes;
	if (++s->n_operations % CHECK_EVENTS == 0)
		r = sums_check(s);
	if (!r)
		r = event_add(s, t, event);
	return s->failed = r;
}

int hr_import_tally(struct hr_import_stream *s, uint32_t thread, const struct hr_import_tally *t)
{
	const struct hr_op_info *info = &s->ops[t->op < HR_OP_MAX ? t->op : 0];
	struct hr_file_op op = {.class = info->class,
				.offset = HR_OFFSET_NONE,
				.bytes = info->bytes_rule == HR_BYTES_NONE ? 0 : t->bytes,
				.count = t->count,
				.start_ns = t->start_ns,
				.dur_ns = t->end_ns - t->start_ns};
	uint64_t proc, max_ns = t->max_ns ? t->max_ns : t->count ? t->dur_ns / t->count : 0;
	struct hr_rollup *row;
	uint32_t i;

	if (s->failed || !thread)
		return s->failed ? s->failed : -ENOMEM;
	if (info->class == HR_CLASS_NONE || info->class == HR_CLASS_HOOK || !t->count ||
	    t->count > UINT32_MAX || t->end_ns < t->start_ns || t->bytes > BYTES_MOST)
		return -EBADMSG;
	proc = s->threads[thread - 1].proc;
	hr__istream_extend(s, (uint32_t)proc, t->start_ns, t->end_ns);
	if (t->file) {
		i = hr_filerec_get(&s->records, proc, t->file, info->api, &s->last_record);
		if (i == UINT32_MAX || hr_filerec_tally(&s->records, i, &op, t->dur_ns, max_ns))
			return s->failed = -ENOMEM;
	}
	row = hr_rollup_row(&s->rollups, hr_rollup_window(&op), proc, t->op, 0, 0,
			    &s->rollup_of[t->op]);
	if (!row)
		return s->failed = -ENOMEM;
	row->count += t->count;
	row->dur_ns += t->dur_ns;
	row->max_dur_ns = max_ns > row->max_dur_ns ? max_ns : row->max_dur_ns;
	row->dur_hist[hr_log2_bin(t->dur_ns / t->count)] += (uint32_t)t->count;
	if (info->bytes_rule != HR_BYTES_NONE) {
		row->bytes += op.bytes;
		row->size_hist[hr_log2_bin(op.bytes / t->count)] += (uint32_t)t->count;
	}
	s->n_operations += t->count;
	s->moved_bytes += op.bytes;
	s->failed = sums_check(s);
	if (!s->failed)
		s->failed =
		    hr__istream_lose(s, HR_LOSS_IMPORT_SUMS, t->op, t->count, t->bytes, t->dur_ns);
	return s->failed;
}

/* ---- regions --------------------------------------------------------------------------------- */

static int region_texts(struct hr_import_stream *s, struct hr_import_region *g)
{
	int r = hr_regions_text(s->regions, g->domain.p, g->domain.n, &g->region.domain);

	if (!r)
		r = hr_regions_text(s->regions, g->category.p, g->category.n, &g->region.category);
	if (!r)
		r = hr_regions_text(s->regions, g->name.p, g->name.n, &g->region.name);
	if (!r)
		r = hr_regions_text(s->regions, g->args.p, g->args.n, &g->region.args);
	return r ? r : hr_regions_add(s->regions, &g->region);
}

int hr_import_region(struct hr_import_stream *s, uint32_t thread, struct hr_import_region *g)
{
	const struct hr__import_thread *t;
	uint64_t end_ns = g->region.start_ns + g->region.dur_ns;
	int r = 0;

	if (s->failed || !thread)
		return s->failed ? s->failed : -ENOMEM;
	if (!hr_region_kind_name(g->region.kind) || end_ns < g->region.start_ns)
		return -EBADMSG;
	if (!s->regions)
		r = hr_regions_new(&s->regions);
	t = &s->threads[thread - 1];
	g->region.proc = t->proc;
	g->region.tid = t->tid;
	if (s->into.to)
		g->region.kind = hr__into_kind(s, g->region.kind);
	if (!r && s->region_bytes > REGIONS_MOST_BYTES)
		r = hr__istream_send_regions(s);
	if (!r)
		r = region_texts(s, g);
	if (r == -ENOSPC) {
		r = hr__istream_send_regions(s);
		if (!r)
			r = region_texts(s, g);
	}
	if (r)
		return s->failed = r;
	hr__istream_extend(s, (uint32_t)t->proc, g->region.start_ns, end_ns);
	s->region_bytes += g->domain.n + g->category.n + g->name.n + g->args.n;
	s->n_regions += g->region.count;
	return 0;
}

int hr_import_record(struct hr_import_stream *s, const Headrace__FileRecord *record)
{
	struct hr_arena *a = &s->given_memory;
	Headrace__FileRecord *copy;

	if (s->failed)
		return s->failed;
	if (!record->proc || record->proc > s->n_processes)
		return -EBADMSG;
	copy = hr_arena_copy(a, record, sizeof(*record));
	if (!copy || !hr_array_reserve(s->given, s->n_given, s->given_room))
		return s->failed = -ENOMEM;
	copy->read_size_hist = hr_arena_copy(
	    a, record->read_size_hist, record->n_read_size_hist * sizeof(*copy->read_size_hist));
	copy->write_size_hist = hr_arena_copy(
	    a, record->write_size_hist, record->n_write_size_hist * sizeof(*copy->write_size_hist));
	if (a->failed)
		return s->failed = -ENOMEM;
	s->given[s->n_given++] = copy;
	hr__istream_extend(s, (uint32_t)record->proc, record->first_ns, record->last_ns);
	return s->failed = s->n_given >= GIVEN_MOST ? hr__istream_send_given(s) : 0;
}

/* SPDX-License-Identifier: Apache-2.0 */

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/array.h"
#include "cli/summary/summary_parts.h"
#include "common/hist.h"
#include "common/loss.h"
#include "common/ops.h"

#define TOP_FILES   5u
#define TOP_FOLDERS 4u
#define WHO_MAX	    4096u

struct loader {
	struct hr_summary *s;
	struct hr_summary_paths *paths;
	struct hr_lives lives;
	struct hr_covers covers;
	struct hr_runs runs;
	/* the current stream; its start, end and state */
	const struct hr_stream *stream;
	struct hr_run_part part;
	/* wall clock; from this time on, the recording has counters only */
	uint64_t counters_ns;
	uint32_t world;
	size_t who_room;
};

/* ---- small helpers ---- */

static uint64_t wall_ns(const struct loader *l, uint64_t boot_ns)
{
	return boot_ns != 0 ? boot_ns + (uint64_t)l->stream->real_minus_boot_ns : 0;
}

static void see_time(struct loader *l, uint64_t boot_ns)
{
	hr_run_part_see(&l->part, wall_ns(l, boot_ns));
}

static struct hr_summary_who *find_who(struct loader *l, const struct hr_process *process)
{
	struct hr_summary *s = l->s;
	int rank = process != NULL ? process->rank : -1,
	    worker = process != NULL ? process->worker : -1;

	for (size_t i = 0; i < s->n_who; i++)
		if (s->who[i].rank == rank && s->who[i].worker == worker)
			return &s->who[i];
	if (s->n_who == WHO_MAX || !hr_array_reserve(s->who, s->n_who, l->who_room))
		return NULL;
	s->who[s->n_who] = (struct hr_summary_who){.rank = rank, .worker = worker};
	return &s->who[s->n_who++];
}

/* ---- frames ---- */

static uint64_t small(const uint64_t *hist, size_t n)
{
	uint64_t reads = 0;

	for (size_t i = 0; i + 1 < n; i += 2)
		if (hist[i] < hr_log2_bin(HR_SUMMARY_SMALL_BYTES))
			reads += hist[i + 1];
	return reads;
}

/* Counts a copy as one operation. add_side() adds the read and the write of the copy. */
static void add_totals(struct hr_totals *t, const Headrace__Rollup *row)
{
	const struct hr_op_info *op = hr_op_info((uint16_t)row->op);

	t->ops += row->count;
	t->errors += row->errors;
	t->io_ns += row->dur_ns;
	if (hr_op_copies((uint16_t)row->op))
		return;
	if (op->class == HR_CLASS_READ) {
		t->reads += row->count;
		t->read_bytes += row->bytes;
		t->read_ns += row->dur_ns;
		t->small_reads += small(row->size_hist, row->n_size_hist);
	} else if (op->class == HR_CLASS_WRITE) {
		t->writes += row->count;
		t->written_bytes += row->bytes;
		t->write_ns += row->dur_ns;
	} else {
		t->others += row->count;
		t->opens += op->class == HR_CLASS_OPEN ? row->count - row->errors : 0;
		t->meta_ns += row->dur_ns;
	}
}

/* Adds reads and writes that are part of a copy, or of single characters (hr_side). */
static void add_side(struct hr_totals *t, const Headrace__Rollup *row)
{
	if (hr_side_single(row->op))
		t->ops += row->count;
	if (hr_side_reads(row->op)) {
		t->reads += row->count;
		t->read_bytes += row->bytes;
		t->read_ns += row->dur_ns;
		t->small_reads += small(row->size_hist, row->n_size_hist);
	} else {
		t->writes += row->count;
		t->written_bytes += row->bytes;
		t->write_ns += row->dur_ns;
	}
}

static void fold_rows(struct loader *l, Headrace__Rollup **rows, size_t n,
		      void (*add)(struct hr_totals *t, const Headrace__Rollup *row))
{
	for (size_t i = 0; i < n; i++) {
		struct hr_summary_who *who;

		if (rows[i]->scope != 0) {
			add(&l->s->runtime, rows[i]);
			continue;
		}
		add(&l->s->data, rows[i]);
		if (rows[i]->op == HR_OP_mmap || rows[i]->op == HR_OP_mmap64)
			l->s->mapped.maps += rows[i]->count - rows[i]->errors;
		who = find_who(l, hr_stream_process(l->stream, rows[i]->proc));
		if (who != NULL)
			add(&who->data, rows[i]);
	}
}

static int fold_rollups(struct loader *l, const Headrace__RollupBatch *batch)
{
	int r = 0;

	fold_rows(l, batch->rows, batch->n_rows, add_totals);
	fold_rows(l, batch->sides, batch->n_sides, add_side);
	for (size_t i = 0; i < batch->n_rows && r == 0; i++)
		r = hr_covers_rollup(&l->covers, l->stream, batch->rows[i]);
	for (size_t i = 0; i < batch->n_sides && r == 0; i++)
		r = hr_covers_rollup(&l->covers, l->stream, batch->sides[i]);
	return r;
}

static int fold_kernel(struct loader *l, const Headrace__KernelRecords *records)
{
	int r = 0;

	for (size_t i = 0; i < records->n_rows && r == 0; i++)
		r = hr_covers_kernel(&l->covers, l->stream, records->rows[i], &l->s->cover);
	return r;
}

static int fold_files(struct loader *l, const Headrace__FileRecords *records)
{
	for (size_t i = 0; i < records->n_rows; i++) {
		const Headrace__FileRecord *row = records->rows[i];

		see_time(l, row->first_ns);
		see_time(l, row->last_ns);
		if (hr_paths_add(l->paths, l->stream, row) < 0)
			return -ENOMEM;
	}
	return 0;
}

static int fold_regions(struct loader *l, Headrace__Regions *msg)
{
	struct hr_region region;
	int r = 0;

	if (hr_regions_restore(msg) < 0)
		return 0;
	for (size_t i = 0; i < msg->n_key && r == 0; i++) {
		struct hr_summary_who *who;

		hr_regions_get(msg, i, &region);
		l->s->regions += region.count;
		who = find_who(l, hr_stream_process(l->stream, region.proc));
		if (who != NULL && who->worker < 0)
			hr_loop_add(&who->loop, &region);
		r = hr_summary_python_add(&l->s->python, msg, &region);
	}
	return r;
}

static bool is_reason(const char *name, enum hr_loss_reason reason)
{
	return strcmp(name, hr_loss_name(reason)) == 0;
}

int hr_summary_add_loss(struct hr_summary *s, const char *reason, uint64_t count, uint64_t bytes)
{
	struct hr_summary_loss *loss = NULL;

	for (size_t i = 0; i < s->n_losses && loss == NULL; i++)
		if (strcmp(s->losses[i].reason, reason) == 0)
			loss = &s->losses[i];
	if (loss == NULL) {
		char *copy = strdup(reason);

		if (copy == NULL || !hr_array_reserve(s->losses, s->n_losses, s->losses_room)) {
			free(copy);
			return -ENOMEM;
		}
		loss = &s->losses[s->n_losses++];
		*loss = (struct hr_summary_loss){.reason = copy};
	}
	loss->count += count;
	loss->bytes += bytes;
	if (hr_loss_is_operations(reason))
		s->lost += count;
	return 0;
}

/* Removes an unrecorded process from the count. Stores the program of the first one. */
static int take_unrecorded(struct hr_summary *s, const struct hr_process *process,
			   const Headrace__LossRow *row)
{
	s->processes -= process != NULL;
	for (size_t i = 0; i < s->n_losses; i++) {
		struct hr_summary_loss *loss = &s->losses[i];

		if (strcmp(loss->reason, row->reason) != 0 || loss->program != NULL ||
		    process == NULL)
			continue;
		loss->program =
		    strndup((const char *)process->msg->exe.data, process->msg->exe.len);
		if (loss->program == NULL)
			return -ENOMEM;
	}
	return 0;
}

static int fold_losses(struct loader *l, const Headrace__Loss *loss)
{
	int r = 0;

	for (size_t i = 0; i < loss->n_rows && r == 0; i++) {
		const Headrace__LossRow *row = loss->rows[i];

		/* a collision gives a file two ids, but loses no operation */
		if (is_reason(row->reason, HR_LOSS_COLLISION))
			continue;
		r = hr_summary_add_loss(l->s, row->reason, row->count, row->bytes);
		if (r == 0 && hr_loss_is_programs(row->reason))
			r = take_unrecorded(l->s, hr_stream_process(l->stream, row->proc), row);
	}
	return r;
}

static void fold_job(struct loader *l, const Headrace__JobEvent *job)
{
	struct hr_run_part part = {.start_ns = wall_ns(l, job->start_ns),
				   .end_ns = wall_ns(l, job->end_ns)};

	hr_run_part_join(&l->part, &part);
	if (job->ranks_expected > l->s->ranks_expected)
		l->s->ranks_expected = job->ranks_expected;
}

static void fold_level(struct loader *l, const Headrace__Levels *level)
{
	uint64_t from_ns = wall_ns(l, level->start_ns);

	if (strcmp(level->level, "counters") != 0)
		return;
	if (!l->s->counters_only || from_ns < l->counters_ns)
		l->counters_ns = from_ns;
	l->s->counters_only = true;
}

static int fold_frame(void *context, Headrace__Frame *frame)
{
	struct loader *l = context;

	switch (frame->body_case) {
	case HEADRACE__FRAME__BODY_ROLLUPS:
		return fold_rollups(l, frame->rollups);
	case HEADRACE__FRAME__BODY_REGIONS:
		return fold_regions(l, frame->regions);
	case HEADRACE__FRAME__BODY_KERNEL_RECORDS:
		return fold_kernel(l, frame->kernel_records);
	case HEADRACE__FRAME__BODY_FILE_RECORDS:
		return fold_files(l, frame->file_records);
	case HEADRACE__FRAME__BODY_LOSS:
		return fold_losses(l, frame->loss);
	case HEADRACE__FRAME__BODY_JOB:
		fold_job(l, frame->job);
		return 0;
	case HEADRACE__FRAME__BODY_LEVELS:
		fold_level(l, frame->levels);
		return 0;
	case HEADRACE__FRAME__BODY_STREAM_END:
		l->part.killed = strcmp(frame->stream_end->state, "killed") == 0;
		l->part.failed = strcmp(frame->stream_end->state, "failed") == 0;
		l->s->cut_short += frame->stream_end->cut_short;
		return 0;
	default:
		return 0;
	}
}

/* Events are too large to read. */
#define FRAMES_READ                                                                                \
	(HR_FRAME_BIT(ROLLUPS) | HR_FRAME_BIT(FILE_RECORDS) | HR_FRAME_BIT(LOSS) |                 \
	 HR_FRAME_BIT(JOB) | HR_FRAME_BIT(LEVELS) | HR_FRAME_BIT(STREAM_END) |                     \
	 HR_FRAME_BIT(REGIONS) | HR_FRAME_BIT(KERNEL_RECORDS))

/* ---- streams ---- */

/* A shorter process trains nothing. */
#define TRAINS_LEAST_NS UINT64_C(1000000000)

static int fold_processes(struct loader *l)
{
	for (uint32_t i = 0; i < l->stream->n_processes; i++) {
		const struct hr_process *process = &l->stream->processes[i];
		struct hr_summary_who *who = find_who(l, process);
		struct hr_life life = {.rank = process->rank,
				       .worker = process->worker,
				       .start_ns = wall_ns(l, process->msg->start_ns),
				       .end_ns = wall_ns(l, process->msg->end_ns)};

		if (hr_lives_add(&l->lives, &life) < 0 || hr_ends_add(l->s, process) < 0 ||
		    hr_left_out_take(&l->s->left_out, process) < 0)
			return -ENOMEM;
		if (who != NULL) {
			who->processes++;
			who->deselected = who->deselected || process->msg->deselected;
		}
		if (process->msg->end_ns == 0 ||
		    process->msg->end_ns - process->msg->start_ns >= TRAINS_LEAST_NS)
			hr_summary_python_take(&l->s->python, &process->msg->cmdline);
		l->s->processes++;
		l->s->processes_open += process->msg->end_ns == 0;
		if (process->msg->world_size > l->world)
			l->world = process->msg->world_size;
		see_time(l, process->msg->start_ns);
		see_time(l, process->msg->end_ns);
	}
	return 0;
}

static int fold_stream(struct loader *l, const struct hr_stream *stream)
{
	int r;

	l->stream = stream;
	l->s->stored_bytes += stream->bytes;
	l->part = (struct hr_run_part){.running = !stream->ended && stream->live,
				       .unfinished = !stream->ended && !stream->live};
	l->s->partial |= stream->n_frames > 0 && stream->frames[0].seq > 1;
	r = fold_processes(l);
	for (uint32_t i = 0; i < stream->n_batches; i++)
		l->s->events += stream->batches[i].count;
	if (r == 0)
		r = hr_stream_each_frame(stream, FRAMES_READ, fold_frame, l, NULL);
	hr_covers_take(&l->covers, stream, &l->s->cover);
	return r < 0 ? r : hr_runs_add(&l->runs, &l->part);
}

static uint32_t count_nodes(const struct hr_stream *streams, size_t n)
{
	uint32_t nodes = 0;

	for (size_t i = 0; i < n; i++) {
		bool seen = false;

		for (size_t k = 0; k < i && !seen; k++)
			seen = strcmp(streams[i].node, streams[k].node) == 0;
		nodes += !seen;
	}
	return nodes;
}

/* ---- loading ---- */

static int copy_problems(struct hr_summary *s, const struct hr_catalog *catalog)
{
	const struct hr_problem *problems;
	size_t n = hr_catalog_problems(catalog, &problems);

	s->problems = calloc(n + 1, sizeof(*s->problems));
	for (size_t i = 0; i < n && s->problems != NULL; i++) {
		s->problems[i] = strdup(problems[i].text);
		s->n_problems = i + 1;
	}
	return s->problems != NULL ? 0 : -ENOMEM;
}

static int take_runs(struct loader *l)
{
	struct hr_run_part job;
	int r = hr_runs_take(&l->runs, l->s, &job);

	if (r < 0)
		return r;
	hr_lives_sum(&l->lives, hr_run_part_end(&job), l->s->who, l->s->n_who);
	if (l->counters_ns > hr_run_part_start(&job))
		l->s->counters_from_ns = l->counters_ns - hr_run_part_start(&job);
	return 0;
}

static int fold_catalog(struct loader *l, const struct hr_catalog *catalog)
{
	const struct hr_stream *streams;
	size_t n = hr_catalog_streams(catalog, &streams);
	int r = copy_problems(l->s, catalog);

	for (size_t i = 0; i < n && r == 0; i++)
		r = fold_stream(l, &streams[i]);
	if (r == 0)
		r = take_runs(l);
	if (r < 0)
		return r;
	l->s->streams = (uint32_t)n;
	l->s->nodes = count_nodes(streams, n);
	l->s->files = calloc(TOP_FILES, sizeof(*l->s->files));
	l->s->folders = calloc(TOP_FOLDERS, sizeof(*l->s->folders));
	if (l->s->files == NULL || l->s->folders == NULL)
		return -ENOMEM;
	l->s->n_files = hr_paths_files(l->paths, l->s->files, TOP_FILES);
	l->s->n_folders = hr_paths_folders(l->paths, l->s->folders, TOP_FOLDERS);
	r = hr_paths_special(l->paths, &l->s->memory, &l->s->mapped);
	if (r < 0)
		return r;
	hr_ranks_count(l->s, l->world);
	return hr_summary_diagnose(l->s, catalog);
}

int hr_summary_load(const char *store, const char *job, struct hr_summary **ret, char **ret_error)
{
	struct loader l = {.s = calloc(1, sizeof(*l.s)), .paths = hr_paths_new()};
	struct hr_catalog *catalog = NULL;
	int r = l.s != NULL && l.paths != NULL
		    ? hr_catalog_open(&store, 1, &(const struct hr_catalog_filter){.job = job},
				      &catalog, ret_error)
		    : -ENOMEM;

	if (r == 0) {
		l.s->command = -1;
		l.s->store = strdup(store);
		l.s->job = strdup(job);
		r = l.s->store != NULL && l.s->job != NULL ? fold_catalog(&l, catalog) : -ENOMEM;
	}
	hr_paths_free(l.paths);
	hr_lives_done(&l.lives);
	hr_runs_done(&l.runs);
	hr_catalog_free(catalog);
	if (r < 0) {
		hr_summary_free(l.s);
		return r;
	}
	*ret = l.s;
	return 0;
}

static void free_paths(struct hr_summary_path *list, size_t n)
{
	for (size_t i = 0; i < n; i++)
		free(list[i].path);
	free(list);
}

void hr_summary_free(struct hr_summary *s)
{
	if (s == NULL)
		return;
	free_paths(s->files, s->n_files);
	free_paths(s->folders, s->n_folders);
	hr_summary_finding_free(&s->finding);
	free(s->parts);
	for (size_t i = 0; i < s->n_losses; i++) {
		free(s->losses[i].reason);
		free(s->losses[i].program);
	}
	for (size_t i = 0; i < s->n_problems; i++)
		free(s->problems[i]);
	hr_ends_free(s);
	hr_left_out_done(&s->left_out);
	hr_summary_python_done(&s->python);
	free(s->losses);
	free(s->problems);
	free(s->who);
	free(s->ranks_missing);
	free(s->ranks_deselected);
	free(s->state);
	free(s->run_state);
	free(s->store);
	free(s->job);
	free(s);
}

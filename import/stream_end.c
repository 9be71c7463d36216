/* SPDX-License-Identifier: Apache-2.0 */
/* The end of a stream: processes, names that were not known before, losses, the job. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/users.h"
#include "import/internal.h"

#define TEXTS_MOST_BYTES (4u << 20) /* of the processes of a frame */

static uint32_t clamp_plus1(int32_t value)
{
	return value < 0 ? 0 : (uint32_t)value + 1;
}

/* The processes of each pid: of[k] is the process before k that had its pid. NONE: none. */
struct pid_chains {
	struct hr_map64 last; /* of a pid */
	uint32_t *before;
};

#define NONE HR_MAP64_NONE

static int chains_make(const struct hr_import_stream *s, struct pid_chains *c)
{
	c->before = calloc(s->n_processes + 1, sizeof(*c->before));
	if (!c->before)
		return -ENOMEM;
	for (uint32_t k = 0; k < s->n_processes; k++) {
		uint32_t pid = (uint32_t)s->processes[k].pid;

		c->before[k] = hr_map64_get(&c->last, pid);
		if (hr_map64_set(&c->last, pid, k))
			return -ENOMEM;
	}
	return 0;
}

static uint64_t process_start(const struct hr_import_process *p)
{
	return p->start_ns ? p->start_ns : p->first_ns;
}

/* Sets the parent, and the image before an exec, if they are in this stream. */
static void relatives_set(const struct hr_import_stream *s, const struct pid_chains *c, uint32_t k,
			  Headrace__Process *m)
{
	const struct hr_import_process *all = s->processes;
	uint32_t parent = all[k].ppid ? hr_map64_get(&c->last, (uint32_t)all[k].ppid) : NONE;
	uint32_t image = c->before[k];

	while (parent != NONE && process_start(&all[parent]) > process_start(&all[k]))
		parent = c->before[parent];
	if (parent != NONE && parent != k)
		m->parent_proc = (uint64_t)parent + 1;
	if (image != NONE && all[image].exit && strcmp(all[image].exit, "exec") == 0)
		m->exec_of = (uint64_t)image + 1;
}

static void process_message(struct hr_arena *arena, uint64_t proc,
			    const struct hr_import_process *p, Headrace__Process *m)
{
	headrace__process__init(m);
	m->proc = proc;
	m->pid = p->pid;
	m->ppid = p->ppid;
	m->uid = getuid();
	if (p->exe)
		m->exe = hr_bytes_in(arena, p->exe, strlen(p->exe));
	if (p->cmdline)
		m->cmdline = hr_bytes_in(arena, p->cmdline, strlen(p->cmdline));
	m->exit = hr_arena_text(arena, p->exit ? p->exit : "");
	m->start_ns = process_start(p);
	m->end_ns = p->end_ns ? p->end_ns : p->alive ? 0 : p->last_ns;
	if (m->start_ns == UINT64_MAX) /* nothing is known about its times */
		m->start_ns = m->end_ns;
	m->rank_plus1 = clamp_plus1(p->rank);
	m->local_rank_plus1 = clamp_plus1(p->local_rank);
	m->worker_plus1 = clamp_plus1(p->worker);
	m->loader_plus1 = clamp_plus1(p->loader);
	m->loader_worker_plus1 = clamp_plus1(p->loader_worker);
	m->restart_plus1 = clamp_plus1(p->restart);
	m->world_size = p->world_size;
	m->cpus = p->cpus;
	m->first_cpu = p->first_cpu;
	m->cpu_quota_milli = p->cpu_quota_milli;
	m->rank_source = hr_arena_text(arena, p->rank_source ? p->rank_source : "");
}

/* How many processes from `from` on fit into a frame. */
static uint32_t processes_of_frame(const struct hr_import_stream *s, uint32_t from)
{
	uint32_t n = 0;
	size_t bytes = 0;

	while (from + n < s->n_processes && n < HR_ROWS_MOST && bytes < TEXTS_MOST_BYTES) {
		const struct hr_import_process *p = &s->processes[from + n++];

		bytes += (p->exe ? strlen(p->exe) : 0) + (p->cmdline ? strlen(p->cmdline) : 0);
	}
	return n;
}

static int send_processes(struct hr_import_stream *s)
{
	struct pid_chains chains = {0};
	int r = chains_make(s, &chains);

	for (uint32_t from = 0, n; from < s->n_processes && !r; from += n) {
		Headrace__Processes m = HEADRACE__PROCESSES__INIT;
		struct hr_arena arena = {0};
		Headrace__Process *rows;

		n = processes_of_frame(s, from);
		rows = hr_rows_in(&arena, n, sizeof(*rows), &m.rows);
		for (uint32_t i = 0; i < n && rows; i++) {
			const Headrace__Process *recorded = NULL;

			if (s->into.to)
				recorded = hr__into_process(s, &s->processes[from + i]);
			process_message(&arena, from + i + 1, &s->processes[from + i], &rows[i]);
			if (recorded) {
				rows[i].same_as = recorded->proc;
				rows[i].exe = recorded->exe;
				rows[i].cmdline = recorded->cmdline;
			}
			relatives_set(s, &chains, from + i, &rows[i]);
			m.n_rows++;
		}
		r = arena.failed ? -ENOMEM
				 : hr__istream_send_body(s, PROCESSES, processes, &m, true);
		hr_arena_free(&arena);
	}
	hr_map64_done(&chains.last);
	free(chains.before);
	return r;
}

/* Processes may start before their first operation, and end after their last one. */
static void times_extend(struct hr_import_stream *s)
{
	for (uint32_t k = 0; k < s->n_processes; k++) {
		const struct hr_import_process *p = &s->processes[k];

		if (p->start_ns && p->start_ns < s->first_ns)
			s->first_ns = p->start_ns;
		if (p->start_ns > s->last_ns)
			s->last_ns = p->start_ns;
		if (p->end_ns > s->last_ns)
			s->last_ns = p->end_ns;
	}
}

/* Adds what the stream knows about the job to that of the whole import. */
static void job_note(struct hr_import_stream *s)
{
	struct hr_import *i = s->import;
	struct hr__import_job *job = &i->job;

	pthread_mutex_lock(&i->lock);
	for (uint32_t k = 0; k < s->n_processes; k++) {
		const struct hr_import_process *p = &s->processes[k];

		if (p->rank >= 0 && (uint32_t)p->rank >= job->largest_rank_plus1)
			job->largest_rank_plus1 = (uint32_t)p->rank + 1;
		if (p->world_size > job->world_size)
			job->world_size = p->world_size;
	}
	i->result->operations += s->n_operations;
	i->result->regions += s->n_regions;
	i->result->processes += s->n_processes;
	i->result->moved_bytes += s->moved_bytes;
	pthread_mutex_unlock(&i->lock);
}

int hr__istream_finish_reading(struct hr_import_stream *s)
{
	int r = s->failed;

	if (!r)
		r = hr_import_region_flush(s);
	if (!r)
		r = hr__istream_send_batch(s);
	if (!r)
		r = hr__istream_send_regions(s);
	if (!r)
		r = hr__istream_send_rollups(s, UINT64_MAX);
	if (!r)
		r = hr__istream_send_records(s, true);
	if (!r)
		r = hr__istream_send_given(s);
	if (!r && s->into.to)
		r = hr__into_clock(s, s->file);
	times_extend(s);
	if (!r)
		r = send_processes(s);
	if (!r)
		job_note(s);
	hr_encoder_free(s->encoder);
	free(s->batch);
	hr_regions_free(s->regions);
	hr_rollups_done(&s->rollups);
	hr_filerecs_done(&s->records);
	hr_map64_done(&s->file_of);
	hr_map64_done(&s->thread_of);
	s->encoder = NULL;
	s->batch = NULL;
	s->regions = NULL;
	s->file = NULL;
	return s->failed = r;
}

bool hr__istream_is_waiting(const struct hr_import_stream *s)
{
	for (uint32_t i = 0; i < s->n_unnamed; i++)
		if (!s->files[s->unnamed[i].id - 1].named)
			return true;
	return false;
}

int hr__istream_rest(struct hr_import_stream *s)
{
	struct hr_writer *w = s->writer;

	s->writer = NULL;
	return s->failed = hr_writer_close(w);
}

/* Names the files that were not named in their own file. */
static int files_name(struct hr_import_stream *s)
{
	uint64_t missing = 0;
	int r = 0;

	for (uint32_t i = 0; i < s->n_unnamed && !r; i++) {
		const struct hr__unnamed *u = &s->unnamed[i];
		size_t bytes;
		char *text;

		if (s->files[u->id - 1].named)
			continue;
		text = hr_import_shared_find(s->import, HR_IMPORT_PATHS, u->key, &bytes);
		missing += !text;
		r = text ? hr_import_path_resolve(s, u->id, text, bytes)
			 : hr_import_path_resolve(s, u->id, u->fallback, strlen(u->fallback));
		free(text);
	}
	if (missing && !r)
		r = hr__istream_lose(s, HR_LOSS_IMPORT_NAMES, 0, missing, 0, 0);
	return r;
}

static int send_losses(struct hr_import_stream *s)
{
	Headrace__Loss m = HEADRACE__LOSS__INIT;
	Headrace__LossRow **rows = calloc(s->n_losses + 1, sizeof(*rows));
	int r = rows ? 0 : -ENOMEM;

	for (uint32_t i = 0; i < s->n_losses && rows; i++)
		rows[m.n_rows++] = &s->losses[i];
	m.rows = rows;
	if (!r && m.n_rows)
		r = hr__istream_send_body(s, LOSS, loss, &m, true);
	free(rows);
	return r;
}

static int send_levels(struct hr_import_stream *s)
{
	Headrace__Levels m = HEADRACE__LEVELS__INIT;

	if (s->first_ns > s->last_ns)
		return 0;
	m.level = "trace"; /* operations without events are losses: import_sums */
	m.start_ns = s->first_ns;
	m.end_ns = s->last_ns;
	return hr__istream_send_body(s, LEVELS, levels, &m, false);
}

/* The number of ranks that the job had, as far as is known. 0: unknown. */
static uint32_t ranks_expected(const struct hr_import *i)
{
	uint32_t n = i->options->ranks;

	if (i->job.world_size > n)
		n = i->job.world_size;
	if (i->job.largest_rank_plus1 > n)
		n = i->job.largest_rank_plus1;
	return n;
}

/* Sends a message about the job, with one label. */
static int send_job_event(struct hr_import_stream *s, Headrace__JobEvent *m, char *key,
			  const char *value)
{
	Headrace__JobEvent__LabelsEntry label = HEADRACE__JOB_EVENT__LABELS_ENTRY__INIT;
	Headrace__JobEvent__LabelsEntry *labels[] = {&label};

	label.key = key;
	label.value = (char *)(uintptr_t)value;
	m->labels = labels;
	m->n_labels = 1;
	return hr__istream_send_body(s, JOB, job, m, false);
}

/* Of an added stream, only the label counts (query/tables/jobs.c). */
static int send_job_added(struct hr_import_stream *s)
{
	Headrace__JobEvent m = HEADRACE__JOB_EVENT__INIT;
	char *key;
	int r;

	if (asprintf(&key, "clock of %s", s->into.name) < 0)
		return -ENOMEM;
	r = send_job_event(s, &m, key, s->into.clock);
	free(key);
	return r;
}

static int send_job(struct hr_import_stream *s, bool last)
{
	Headrace__JobEvent m = HEADRACE__JOB_EVENT__INIT;
	struct hr_user user;

	m.state = "ended";
	m.uid = getuid();
	m.user = hr_user_by_id(m.uid, &user) ? user.name : "";
	m.name = s->program ? (char *)(uintptr_t)s->program : "";
	m.start_ns = s->first_ns <= s->last_ns ? s->first_ns : 0;
	m.end_ns = s->last_ns;
	if (last)
		m.ranks_expected = ranks_expected(s->import);
	return send_job_event(s, &m, "imported", s->reader);
}

static int send_end(struct hr_import_stream *s)
{
	Headrace__StreamEnd m = HEADRACE__STREAM_END__INIT;

	m.state = "ended";
	return hr__istream_send_body(s, STREAM_END, stream_end, &m, false);
}

/* Adds the losses that belong to no stream. */
static int job_losses(struct hr_import_stream *s)
{
	int r = 0;

	for (int reason = 0; reason < HR_LOSS_REASONS && !r; reason++)
		if (s->import->losses[reason])
			r = hr__istream_lose(s, (enum hr_loss_reason)reason, 0,
					     s->import->losses[reason], 0, 0);
	return r;
}

/* The frames of a stream that is a job, or a part of one. */
static int send_rest(struct hr_import_stream *s, bool last)
{
	int r = files_name(s);

	if (!r)
		r = hr__istream_send_paths(s);
	if (!r)
		r = send_levels(s);
	return r ? r : send_job(s, last);
}

int hr__istream_end(struct hr_import_stream *s, bool last)
{
	int r = s->failed;

	if (!r)
		r = hr__istream_open(s);
	if (!r)
		r = s->into.to ? send_job_added(s) : send_rest(s, last);
	if (!r && last)
		r = job_losses(s);
	if (!r)
		r = send_losses(s);
	if (!r)
		r = send_end(s);
	if (!r) {
		r = hr_writer_close(s->writer);
		s->writer = NULL;
	}
	hr__istream_free(s);
	return r;
}

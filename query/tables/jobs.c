/* SPDX-License-Identifier: Apache-2.0 */
/* The table `jobs`: a row for each (cluster, job, attempt), from all its streams. */
#include <errno.h>
#include <stdlib.h>

#include "common/array.h"
#include "common/order.h"
#include "query/tables/rows.h"

#define STATE_RUNNING "running"
#define STATE_SILENT  "silent"
#define STATE_KILLED  "killed"
#define STATE_FAILED  "failed"
#define STATE_ENDED   "ended"

static void take_text(struct hr_query *q, duckdb_string_t *to, const char *text)
{
	if (text != NULL && text[0] != '\0')
		*to = hr__string_copy(&q->pool, text);
}

static void take_event(struct hr_query *q, struct hr_job_row *job, const struct hr_qstream *st,
		       const Headrace__JobEvent *e)
{
	int64_t start = e->start_ns != 0 ? hr_wall_ns(st, e->start_ns) : 0;
	int64_t end = e->end_ns != 0 ? hr_wall_ns(st, e->end_ns) : 0;

	take_text(q, &job->array_job, e->array_job);
	take_text(q, &job->array_task, e->array_task);
	take_text(q, &job->user, e->user);
	take_text(q, &job->account, e->account);
	take_text(q, &job->partition, e->partition);
	take_text(q, &job->name, e->name);
	job->uid = e->uid;
	job->uid_known = true;
	if (start != 0 && (job->start_ns == 0 || start < job->start_ns))
		job->start_ns = start;
	if (end > job->end_ns)
		job->end_ns = end;
	if (e->ranks_expected > job->ranks_expected)
		job->ranks_expected = e->ranks_expected;
	if (e->nodes_expected > job->nodes_expected)
		job->nodes_expected = e->nodes_expected;
}

static int take_stream(struct hr_query *q, struct hr_job_row *job, const struct hr_qstream *st)
{
	struct hr_frames events, ends;
	int r;

	if (st->s->added_to != NULL) /* it belongs to a job, which does not depend on it */
		return 0;
	r = hr_frames_read(q, st, HEADRACE__FRAME__BODY_JOB, &events);
	if (r < 0)
		return r;
	for (size_t i = 0; i < events.n; i++)
		take_event(q, job, st, events.list[i]->job);
	hr_frames_free(&events);
	if (!job->uid_known && st->s->uid_known) {
		job->uid = st->s->uid;
		job->uid_known = true;
	}
	r = hr_frames_read(q, st, HEADRACE__FRAME__BODY_STREAM_END, &ends);
	if (r < 0)
		return r;
	for (size_t i = 0; i < ends.n; i++) {
		const char *state = ends.list[i]->stream_end->state;

		job->killed |= strcmp(state, STATE_KILLED) == 0;
		job->failed |= strcmp(state, STATE_FAILED) == 0;
	}
	hr_frames_free(&ends);
	job->live |= st->state == HR_STREAM_RUNNING;
	job->silent |= st->state == HR_STREAM_SILENT;
	job->unfinished |= st->state == HR_STREAM_CUT;
	for (uint32_t i = 0; i < st->s->n_processes; i++) {
		if (st->s->processes[i].msg->world_size > job->ranks_expected)
			job->ranks_expected = st->s->processes[i].msg->world_size;
	}
	return 0;
}

/* Counts the ranks and nodes of a job. Streams of one node are adjacent. */
static int count_parts(struct hr_job_row *job)
{
	int64_t *ranks = NULL;
	size_t n = 0, size = 0;

	for (size_t i = 0; i < job->n_streams; i++) {
		const struct hr_qstream *st = &job->of.st[i];

		job->nodes += i == 0 || strcmp(st[-1].s->node, st->s->node) != 0;
		for (uint32_t p = 0; p < st->s->n_processes; p++) {
			if (st->s->processes[p].rank < 0)
				continue;
			if (!hr_array_reserve(ranks, n, size)) {
				free(ranks);
				return -ENOMEM;
			}
			ranks[n++] = st->s->processes[p].rank;
		}
	}
	hr_int64s_sort(ranks, n);
	for (size_t i = 0; i < n; i++)
		job->ranks_seen += i == 0 || ranks[i] != ranks[i - 1];
	free(ranks);
	return 0;
}

static int jobs_finish(struct hr_job_row *job)
{
	const char *state = STATE_ENDED;

	if (job->live)
		state = STATE_RUNNING;
	else if (job->silent)
		state = STATE_SILENT;
	else if (job->unfinished || job->killed)
		state = STATE_KILLED;
	else if (job->failed)
		state = STATE_FAILED;
	job->state = hr_string(state, (uint32_t)strlen(state));
	return count_parts(job);
}

static int jobs_gather(struct hr_rows *rows, uint64_t want)
{
	struct hr_query *q = rows->q;
	struct hr_job_row *job = NULL;
	int r = 0;

	(void)want;
	for (size_t i = 0; r == 0 && i < q->n_streams; i++) {
		const struct hr_qstream *st = &q->streams[i];

		if (i == 0 || !hr_same_job(st[-1].s, st->s)) {
			job = hr_rows_add(rows, sizeof(*job));
			if (job == NULL)
				return -ENOMEM;
			job->of.st = st;
		}
		job->n_streams++;
		r = take_stream(q, job, st);
	}
	for (size_t k = 0; r == 0 && k < rows->n; k++)
		r = jobs_finish((struct hr_job_row *)rows->data + k);
	return r;
}

static const void *jobs_row(const struct hr_rows *rows, size_t row)
{
	return (const struct hr_job_row *)rows->data + row;
}

static void jobs_cell(const struct hr_rows *rows, size_t row, unsigned column, struct hr_cell *c)
{
	const struct hr_job_row *job = jobs_row(rows, row);

	if (column == HR_JOBS_uid) {
		c->u = job->uid;
		c->null = !job->uid_known;
	} else { /* end_ns */
		hr__cell_nonzero(c, job->live || job->silent ? 0 : (uint64_t)job->end_ns);
	}
}

const struct hr_row_kind hr__jobs_kind = {
    .table = HR_TABLE_JOBS,
    .all = true,
    .of_job = true,
    .gather = jobs_gather,
    .row = jobs_row,
    .cell = jobs_cell,
};

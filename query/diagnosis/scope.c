/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdlib.h>
#include <time.h>

#include "query/diagnosis/diagnosis.h"
#include "query/tables/rows.h"

struct job_time {
	int64_t start, end; /* wall clock; 0: unknown */
	bool runs, silent;
};

static int add_stream(struct hr_query *q, size_t stream, struct job_time *t)
{
	const struct hr_qstream *st = &q->streams[stream];
	struct hr_frames frames;
	int r = hr_frames_read(q, st, HEADRACE__FRAME__BODY_JOB, &frames);

	if (r < 0)
		return r;
	for (size_t i = 0; i < frames.n; i++) {
		const Headrace__JobEvent *e = frames.list[i]->job;
		int64_t start = e->start_ns != 0 ? hr_wall_ns(st, e->start_ns) : 0;
		int64_t end = e->end_ns != 0 ? hr_wall_ns(st, e->end_ns) : 0;

		t->start = start != 0 && (t->start == 0 || start < t->start) ? start : t->start;
		t->end = end > t->end ? end : t->end;
	}
	t->runs |= st->state == HR_STREAM_RUNNING;
	t->silent |= st->state == HR_STREAM_SILENT;
	hr_frames_free(&frames);
	return 0;
}

/* No job lasts longer. The sum of the wall clock and this time fits into 64 bits. */
#define SECONDS_MOST 1e9

static int64_t moment(const struct job_time *t, double seconds, int64_t absent)
{
	int64_t end = t->end;

	if (isnan(seconds))
		return absent;
	if (t->runs || end == 0) {
		struct timespec now;

		clock_gettime(CLOCK_REALTIME, &now);
		end = now.tv_sec * INT64_C(1000000000) + now.tv_nsec;
	}
	return (seconds < 0 ? end : t->start) +
	       (int64_t)(fmax(-SECONDS_MOST, fmin(SECONDS_MOST, seconds)) * 1e9);
}

/*
 * Reads when each job started and ended: the list of the caller, which has an element for each job.
 * `scope`: stores the part of the time that it selects. -ENOMEM.
 */
static int read_times(const struct hr_diagnosis *d, const struct hr_scope *scope,
		      struct hr_job_span *to)
{
	int r = 0;

	for (size_t job = 0, i = 0; r == 0 && job < d->n_jobs; job++) {
		struct job_time t = {0};

		for (; r == 0 && i < d->q->n_streams && d->jobs[i] == job; i++)
			r = add_stream(d->q, i, &t);
		if (scope != NULL)
			to[job] = (struct hr_job_span){moment(&t, scope->from, INT64_MIN),
						       moment(&t, scope->to, INT64_MAX)};
		else
			to[job] = (struct hr_job_span){t.start, t.runs || t.silent || t.end == 0
								    ? (int64_t)d->q->now_ns
								    : t.end};
	}
	return r;
}

int hr__spans_read(const struct hr_diagnosis *d, struct hr_job_span **ret)
{
	const struct hr_scope *scope = &d->scope;
	struct hr_job_span *spans = malloc((d->n_jobs + 1) * sizeof(*spans));

	*ret = spans;
	if (spans == NULL)
		return -ENOMEM;
	for (size_t job = 0; job < d->n_jobs; job++)
		spans[job] = (struct hr_job_span){INT64_MIN, INT64_MAX};
	return isnan(scope->from) && isnan(scope->to) ? 0 : read_times(d, scope, spans);
}

int hr__job_times(const struct hr_diagnosis *d, struct hr_job_span **ret)
{
	*ret = malloc((d->n_jobs + 1) * sizeof(**ret));
	return *ret != NULL ? read_times(d, NULL, *ret) : -ENOMEM;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* The time of a job that a diagnosis is about. */
#include <errno.h>
#include <time.h>

#include "query/diagnosis/diagnosis.h"
#include "query/diagnosis/life_internal.h"
#include "query/tables/rows.h"

struct job_time {
	int64_t start, end; /* wall clock; end 0: it runs */
	bool runs;
};

static int add_stream(struct hr_query *q, uint32_t stream, struct job_time *t)
{
	const struct hr_qstream *st = &q->streams[stream];
	struct hr_frames frames;
	int r = hr__frames_read(q, st, HEADRACE__FRAME__BODY_JOB, &frames);

	if (r < 0)
		return r;
	for (size_t i = 0; i < frames.n; i++) {
		const Headrace__JobEvent *e = frames.list[i]->job;
		int64_t start = e->start_ns != 0 ? hr__wall_ns(st, e->start_ns) : 0;
		int64_t end = e->end_ns != 0 ? hr__wall_ns(st, e->end_ns) : 0;

		t->start = start != 0 && (t->start == 0 || start < t->start) ? start : t->start;
		t->end = end > t->end ? end : t->end;
	}
	t->runs |= st->state == HR_STREAM_RUNNING;
	hr__frames_free(&frames);
	return 0;
}

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
	return (seconds < 0 ? end : t->start) + (int64_t)(seconds * 1e9);
}

int hr__scope_find(struct hr_life_reader *r)
{
	struct job_time t = {0};
	int error = 0;

	r->from = INT64_MIN;
	r->until = INT64_MAX;
	if (isnan(r->scope->from) && isnan(r->scope->to))
		return 0;
	for (uint32_t i = 0; error == 0 && i < r->q->n_streams; i++)
		if (hr__same_job(r->q, i, r->stream))
			error = add_stream(r->q, i, &t);
	r->from = moment(&t, r->scope->from, INT64_MIN);
	r->until = moment(&t, r->scope->to, INT64_MAX);
	return error;
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "query/diagnosis/diagnosis.h"

#include <errno.h>
#include <stdlib.h>

static const Headrace__Process *process_of(const struct hr_diagnosis *d,
					   const struct hr_train_life *life)
{
	return hr_stream_process(d->q->streams[life->stream].s, life->proc)->msg;
}

/*
 * Sets the cores of a training process. Ranks of a node that have the same number of processors and
 * the same first processor probably share these processors. Ranks with the same CPU quota share the
 * quota.
 */
static void share_cores(const struct hr_diagnosis *d, struct hr_train_life *life, size_t first,
			size_t end)
{
	const Headrace__Process *p = process_of(d, life);
	unsigned ranks = 0, same = 0;
	double quota;

	for (size_t i = first; i < end; i++) {
		const Headrace__Process *o = process_of(d, &d->lives.list[i]);

		same += o->cpus == p->cpus && o->first_cpu == p->first_cpu;
		ranks += o->cpu_quota_milli == p->cpu_quota_milli;
	}
	life->cores = (double)p->cpus / same;
	quota = p->cpu_quota_milli / 1e3 / ranks;
	life->quota = quota > 0 && (p->cpus == 0 || quota < life->cores);
	if (life->quota)
		life->cores = quota;
}

static void find_cores(struct hr_diagnosis *d)
{
	for (size_t i = 0; i < d->lives.n; i++) {
		struct hr_train_life *life = &d->lives.list[i];

		share_cores(d, life, d->first[life->stream].life, d->first[life->stream + 1].life);
	}
}

/* ---- the diagnosis ---- */

int hr_diagnosis_make(struct hr_query *q, const struct hr_scope *scope, struct hr_diagnosis *ret)
{
	int r;

	*ret = (struct hr_diagnosis){.q = q, .scope = *scope};
	r = hr__jobs_number(ret);
	if (r == 0)
		r = hr__read_all(ret);
	if (r == 0)
		find_cores(ret);
	if (r == 0)
		r = hr__spent_make(ret);
	if (r == 0)
		r = hr__loads_make(q, &ret->samples, &ret->loads);
	if (r == 0)
		r = hr__stalls_make(ret);
	if (r == 0)
		r = hr__longest_waits_find(ret);
	return r < 0 ? r : hr__sums_make(ret);
}

int hr_diagnosis_shared(struct hr_query *q, const struct hr_diagnosis **ret)
{
	struct hr_diagnosis *d;
	int r = 0;

	pthread_mutex_lock(&q->diagnosis_lock);
	if (q->diagnosis == NULL) {
		d = calloc(1, sizeof(*d));
		r = d != NULL ? hr_diagnosis_make(q, &HR_SCOPE_ALL, d) : -ENOMEM;
		if (d != NULL && r < 0) {
			hr_diagnosis_done(d);
			free(d);
		} else {
			q->diagnosis = d;
		}
	}
	*ret = q->diagnosis;
	pthread_mutex_unlock(&q->diagnosis_lock);
	return r;
}

void hr_diagnosis_done(struct hr_diagnosis *d)
{
	hr__stalls_done(d);
	hr__lives_done(&d->lives);
	free(d->jobs);
	free(d->saves);
	free(d->longest);
	free(d->first);
	free(d->items);
	free(d->ops);
	free(d->samples.list);
	free(d->spent);
	free(d->loads.list);
	free(d->sums);
}

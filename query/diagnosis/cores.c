/* SPDX-License-Identifier: Apache-2.0 */
#include "query/diagnosis/diagnosis.h"

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

void hr__cores_find(struct hr_diagnosis *d)
{
	for (size_t i = 0; i < d->lives.n; i++) {
		struct hr_train_life *life = &d->lives.list[i];

		share_cores(d, life, d->first[life->stream].life, d->first[life->stream + 1].life);
	}
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "query/diagnosis/diagnosis.h"

#include <stdlib.h>
#include <string.h>

int hr_diagnosis_make(struct hr_query *q, const struct hr_scope *scope, struct hr_diagnosis *ret)
{
	int r;

	*ret = (struct hr_diagnosis){.q = q, .scope = *scope};
	r = hr__lives_read(q, &ret->scope, &ret->scan, &ret->lives);
	if (r == 0)
		hr__cores_find(ret);
	if (r == 0)
		r = hr__scan_run(q, &ret->scan);
	if (r == 0)
		r = hr__spent_make(ret);
	if (r == 0)
		r = hr__loads_make(q, &ret->scan.samples, &ret->loads);
	if (r == 0)
		r = hr__stalls_make(ret);
	return r < 0 ? r : hr__sums_make(ret);
}

bool hr__same_job(const struct hr_query *q, uint32_t stream_a, uint32_t stream_b)
{
	const struct hr_stream *a = q->streams[stream_a].s, *b = q->streams[stream_b].s;

	return a->attempt == b->attempt && strcmp(a->job, b->job) == 0 &&
	       strcmp(a->cluster, b->cluster) == 0;
}

void hr_diagnosis_done(struct hr_diagnosis *d)
{
	hr__stalls_done(d);
	hr__lives_done(&d->lives);
	hr__scan_done(&d->scan);
	free(d->spent);
	free(d->loads.list);
	free(d->sums);
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "query/diagnosis/diagnosis.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

int hr__jobs_number(struct hr_diagnosis *d)
{
	const struct hr_query *q = d->q;

	d->jobs = calloc(q->n_streams + 1, sizeof(*d->jobs));
	d->saves = calloc(q->n_streams + 1, sizeof(*d->saves));
	if (d->jobs == NULL || d->saves == NULL)
		return -ENOMEM;
	for (size_t i = 0; i < q->n_streams; i++) {
		if (i == 0 || !hr_same_job(q->streams[i - 1].s, q->streams[i].s))
			d->n_jobs++;
		d->jobs[i] = (uint32_t)(d->n_jobs - 1);
	}
	return 0;
}

struct hr_job_streams hr__job_streams(const struct hr_diagnosis *d, uint32_t stream)
{
	struct hr_job_streams s = {stream, stream};

	while (s.first > 0 && d->jobs[s.first - 1] == d->jobs[stream])
		s.first--;
	while (s.end < d->q->n_streams && d->jobs[s.end] == d->jobs[stream])
		s.end++;
	return s;
}

const struct hr_qmount *hr__item_mounted(const struct hr_diagnosis *d, const struct hr_item *item)
{
	const struct hr_qstream *st = &d->q->streams[item->stream];
	struct hr_file_info info;

	return hr_stream_file(st->s, item->file, false, &info) == 0 ? hr_query_mount(st, info.mount)
								    : NULL;
}

bool hr__text_is(const duckdb_string_t *text, const char *bytes, size_t n)
{
	return text->value.inlined.length == n && memcmp(hr_string_text(text), bytes, n) == 0;
}

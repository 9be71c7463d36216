/* SPDX-License-Identifier: Apache-2.0 */
#include "query/diagnosis/diagnosis.h"

#include <stdlib.h>

int hr_diagnosis_make(struct hr_query *q, struct hr_diagnosis *ret)
{
	int r;

	*ret = (struct hr_diagnosis){.q = q};
	r = hr__lives_read(q, &ret->scan, &ret->lives);
	if (r == 0)
		r = hr__scan_run(q, &ret->scan);
	if (r == 0)
		r = hr__spent_make(ret);
	return r < 0 ? r : hr__sums_make(ret);
}

void hr_diagnosis_done(struct hr_diagnosis *d)
{
	hr__lives_done(&d->lives);
	hr__scan_done(&d->scan);
	free(d->spent);
	free(d->sums);
}

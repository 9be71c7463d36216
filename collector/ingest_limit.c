/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ingest_limit.c - how many streams a user may begin
 *
 * The folder and the three files of a stream exist until retention removes them, so one user could
 * use up the inodes of the store.
 */
#include "collector/ingest_internal.h"

#include "common/array.h"

#define DAY_MS UINT64_C(86400000)

static struct hr__begun *ingest_limit_find(struct hr_ingest *in, uint32_t uid)
{
	for (size_t i = 0; i < in->n_begun; i++)
		if (in->begun[i].uid == uid)
			return &in->begun[i];
	return NULL;
}

bool hr__may_begin(struct hr_ingest *in, uint32_t uid)
{
	const struct hr__begun *b;
	bool may;

	if (in->config.max_new == 0)
		return true;
	pthread_mutex_lock(&in->begun_lock);
	b = ingest_limit_find(in, uid);
	may = !b || b->n < in->config.max_new || hr__now_ms() - b->since_ms >= DAY_MS;
	pthread_mutex_unlock(&in->begun_lock);
	return may;
}

void hr__has_begun(struct hr_ingest *in, uint32_t uid)
{
	struct hr__begun *b;

	pthread_mutex_lock(&in->begun_lock);
	b = ingest_limit_find(in, uid);
	/* If memory is short, the new stream does not count. */
	if (!b && hr_array_reserve(in->begun, in->n_begun, in->begun_room)) {
		b = &in->begun[in->n_begun++];
		*b = (struct hr__begun){.uid = uid, .since_ms = hr__now_ms()};
	}
	if (b && hr__now_ms() - b->since_ms >= DAY_MS)
		*b = (struct hr__begun){.uid = uid, .since_ms = hr__now_ms()};
	if (b)
		b->n++;
	pthread_mutex_unlock(&in->begun_lock);
}

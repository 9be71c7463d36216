/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "common/order.h"
#include "query/tables/each.h"
#include "query/diagnosis/findings_internal.h"

/* Of more training processes, about this many are replayed, and as many that stalled least. */
#define REPLAYED 32u

struct job_replay {
	const struct hr_training_job *j;
	const struct hr_setting *setting;
	bool range;
	struct hr_replayed *list; /* one result for each training process */
};

static double stall_of(const struct hr_training_job *j, size_t i)
{
	return j->d->cycles[j->first + i].stall;
}

/* Chooses every n-th training process, and those that stalled least. -ENOMEM. */
static int choose(struct hr_training_job *j)
{
	size_t n = j->end - j->first, all = 0;
	double *stalls;

	j->each = j->lives > REPLAYED ? j->lives / REPLAYED : 1;
	j->stalled_least = -1;
	if (j->each == 1)
		return 0;
	stalls = malloc(n * sizeof(*stalls));
	if (stalls == NULL)
		return -ENOMEM;
	for (size_t i = 0; i < n; i++)
		if (hr__job_has(j, j->first + i))
			stalls[all++] = stall_of(j, i);
	hr_doubles_sort(stalls, all);
	if (all > REPLAYED && stalls[REPLAYED] < stalls[all - 1])
		j->stalled_least = stalls[REPLAYED];
	free(stalls);
	return 0;
}

static int read_recorded(void *data, size_t i)
{
	struct hr_training_job *j = data;

	if (!hr__job_has(j, j->first + i) ||
	    (i % j->each != 0 && stall_of(j, i) >= j->stalled_least))
		return 0;
	return hr_recorded_new(j->d, &j->d->lives.list[j->first + i], &j->recorded[i]);
}

static int replay_life(void *data, size_t i)
{
	struct job_replay *r = data;

	return r->j->recorded[i] != NULL
		   ? hr_replay(r->j->recorded[i], r->setting, r->range, &r->list[i])
		   : 0;
}

/* -ENOMEM. */
static int replay_lives(struct hr_training_job *j, struct job_replay *all)
{
	size_t n = j->end - j->first;
	int r = 0;

	all->list = calloc(n + 1, sizeof(*all->list));
	if (all->list == NULL)
		return -ENOMEM;
	if (j->recorded == NULL) {
		j->recorded = calloc(n + 1, sizeof(struct hr_recorded_life *));
		r = j->recorded != NULL ? choose(j) : -ENOMEM;
		r = r < 0 ? r : hr_each(j->d->q->threads, n, read_recorded, j);
	}
	return r < 0 ? r : hr_each(j->d->q->threads, n, replay_life, all);
}

int hr__job_replay(struct hr_training_job *j, const struct hr_setting *setting, bool range,
		   struct hr_replayed *ret)
{
	struct job_replay all = {.j = j, .setting = setting, .range = range};
	int r = replay_lives(j, &all);
	struct hr_replayed sum = {0};
	double predicted = 0, low = 0, high = 0, stalls = 0, n = 0;

	for (size_t i = 0; r == 0 && i < j->end - j->first; i++) {
		struct hr_replayed one = all.list[i];
		double stall;

		if (j->recorded[i] == NULL)
			continue;
		stall = stall_of(j, i) / 1e9;
		sum.refusal = one.refusal != HR_REPLAY_OK ? one.refusal : sum.refusal;
		sum.doubt = one.doubt != HR_REPLAY_OK ? one.doubt : sum.doubt;
		sum.recorded += one.recorded;
		sum.replayed += one.replayed;
		sum.predicted += one.predicted;
		sum.low += one.low;
		sum.high += one.high;
		predicted = fmax(predicted, one.predicted - stall);
		low = fmax(low, one.low - stall);
		high = fmax(high, one.high - stall);
		stalls += stall;
		n++;
	}
	free(all.list);
	n = fmax(1, n);
	*ret = (struct hr_replayed){.refusal = sum.refusal,
				    .doubt = sum.doubt,
				    .recorded = sum.recorded / n,
				    .replayed = sum.replayed / n,
				    .predicted = stalls > 0 ? predicted : sum.predicted / n,
				    .low = stalls > 0 ? low : sum.low / n,
				    .high = stalls > 0 ? high : sum.high / n};
	return r;
}

void hr__job_replay_done(struct hr_training_job *j)
{
	for (size_t i = 0; j->recorded != NULL && i < j->end - j->first; i++)
		hr_recorded_free(j->recorded[i]);
	free(j->recorded);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* The time of a job, as means over its training processes. */
#include "query/diagnosis/findings_internal.h"

#include <errno.h>
#include <math.h>
#include <string.h>

#include "query/tables/rows.h"

static int read_levels(struct hr_training_job *j)
{
	struct hr_query *q = j->d->q;

	struct hr_job_streams s = hr__job_streams(j->d, j->stream);

	for (size_t i = s.first; i < s.end; i++) {
		struct hr_frames frames = {0};
		int r;

		r = hr_frames_read(q, &q->streams[i], HEADRACE__FRAME__BODY_LEVELS, &frames);
		for (size_t k = 0; r == 0 && k < frames.n; k++)
			j->counters |= strcmp(frames.list[k]->levels->level, "counters") == 0;
		hr_frames_free(&frames);
		if (r < 0)
			return r;
	}
	return 0;
}

static void add_life(struct hr_training_job *j, const struct hr_train_life *life)
{
	for (size_t i = 0; i < life->n_loops; i++) {
		const struct hr_loop *l = &life->loops[i];

		j->all_loops++;
		j->waits += (double)l->n;
		if (!l->trains)
			continue;
		j->loop += (double)(l->to - l->from) / 1e9;
		j->loops++;
		j->workers = l->workers;
		j->prefetch = l->prefetch;
		j->persistent = l->persistent;
		j->iterable = l->iterable;
		j->other_kind = l->other_kind;
		j->own = l->own;
		j->made = l->made;
		j->batches += (double)l->n;
	}
	j->wall += (double)(life->to - life->from) / 1e9;
	j->cores += life->cores;
	j->quota = life->quota ? life->cores : 0;
	j->lives++;
}

/*
 * Adds the time of a training process. The time for which other ranks waited for this one counts as
 * what this rank did meanwhile, and not as stalls of the other ranks.
 */
static void add_parts(struct hr_training_job *j, size_t life)
{
	const struct hr_part_sums *sums = &j->d->sums[life], *caused = &j->d->caused[life];

	for (unsigned phase = 0; phase < HR_PHASES; phase++)
		for (unsigned part = 0; part < HR_PART_END; part++)
			if (part != HR_PART_STALL)
				j->part[phase][part] +=
				    (double)(sums->ns[phase][part] + caused->ns[phase][part]) /
				    1e9 / (double)j->lives;
}

/* Returns how many cores a training process (without its workers) uses at most in a part. */
static double busy_share(unsigned part, struct hr_main_use use)
{
	switch (part) {
	case HR_PART_COMPUTE:
	case HR_PART_BACKWARD:
	case HR_PART_COLLECTIVE:
	case HR_PART_OPTIMIZER:
		return (isnan(use.share) ? 1 : use.share) + use.others;
	case HR_PART_IMPORTS:
	case HR_PART_OTHER:
		return 1;
	default:
		return 0;
	}
}

static void add_used(struct hr_training_job *j, size_t life)
{
	const struct hr_part_sums *sums = &j->d->sums[life];
	struct hr_main_use use = hr_life_main_use(&j->d->lives.list[life]);

	for (unsigned phase = 0; phase < HR_PHASES; phase++)
		for (unsigned part = 0; part < HR_PART_END; part++)
			j->used += busy_share(part, use) * (double)sums->ns[phase][part] / 1e9;
}

int hr__job_make(struct hr_training_job *j, const struct hr_diagnosis *d, size_t life)
{
	struct hr_job_streams s = hr__job_streams(d, d->lives.list[life].stream);
	const struct hr_stream_firsts *first = &d->first[s.first], *end = &d->first[s.end];

	*j = (struct hr_training_job){.d = d,
				      .stream = d->lives.list[life].stream,
				      .first = first->life,
				      .end = end->life,
				      .first_fetch = first->fetch,
				      .end_fetch = end->fetch,
				      .first_item = first->item,
				      .end_item = end->item,
				      .io_left = 1};
	for (size_t i = j->first; i < j->end; i++) {
		if (!hr__job_has(j, i))
			continue;
		add_life(j, &d->lives.list[i]);
		add_used(j, i);
	}
	for (size_t i = j->first; i < j->end; i++)
		if (hr__job_has(j, i))
			add_parts(j, i);
	for (size_t i = j->first_fetch; i < j->end_fetch; i++) {
		if (hr__job_made(j, &d->lives.fetches[i]))
			j->used += (d->spent[i].cpu + d->spent[i].cached) / 1e9;
	}
	j->used /= j->wall;
	j->wall /= (double)j->lives;
	j->loop /= (double)j->lives;
	j->cores /= (double)j->lives;
	j->loops /= (double)j->lives;
	j->waits /= (double)j->lives;
	j->batches /= (double)j->lives;
	if (j->made != NULL)
		j->made = hr__path_text(j, (const uint8_t *)j->made, strlen(j->made));
	return j->error < 0 ? j->error : read_levels(j);
}

double hr__job_part(const struct hr_training_job *j, enum hr_part part)
{
	double s = 0;

	for (unsigned phase = 0; phase < HR_PHASES; phase++)
		s += phase != HR_PHASE_VALIDATION ? j->part[phase][part] : 0;
	return s;
}

double hr__loop_part(const struct hr_training_job *j, enum hr_part part)
{
	return j->part[HR_PHASE_TRAIN][part] + j->part[HR_PHASE_VALIDATION][part];
}

struct hr_job_waits hr__job_waits(const struct hr_training_job *j)
{
	struct hr_job_waits w = {.read = hr__loop_part(j, HR_PART_WAIT_READ),
				 .metadata = hr__loop_part(j, HR_PART_WAIT_METADATA),
				 .other_io = hr__loop_part(j, HR_PART_WAIT_WRITE) +
					     hr__loop_part(j, HR_PART_WAIT_RUNTIME),
				 .cpu = hr__loop_part(j, HR_PART_WAIT_CPU),
				 .core = hr__loop_part(j, HR_PART_WAIT_CORE),
				 .fault = hr__loop_part(j, HR_PART_WAIT_FAULT),
				 .sleep = hr__loop_part(j, HR_PART_WAIT_SLEEP),
				 .network = hr__loop_part(j, HR_PART_WAIT_NETWORK),
				 .lock = hr__loop_part(j, HR_PART_WAIT_LOCK),
				 .asleep = j->counters ? 0 : hr__loop_part(j, HR_PART_WAIT_ASLEEP)};

	for (unsigned part = 0; part < HR_PART_END; part++)
		w.all +=
		    hr_part_waits(part) && part != HR_PART_WAIT_HIDDEN ? hr__loop_part(j, part) : 0;
	return w;
}

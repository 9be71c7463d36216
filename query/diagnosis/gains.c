/* SPDX-License-Identifier: Apache-2.0 */
/* What a remedy saves, as replays predict it, and which of the usual remedies do not help. */
#include <errno.h>
#include <math.h>

#include "query/diagnosis/findings_internal.h"

/* No change of the loaders saves more than this multiple of all waits; the reason is HR_REST's. */
#define MOST_GAIN 1.05
/* A setting that saves at least this share of the time in the line is advised first. Chosen. */
#define SETTING_FIRST 0.5

double hr__most_gain(const struct hr_training_job *j)
{
	return MOST_GAIN * hr__job_waits(j).all;
}

bool hr__predict(struct hr_training_job *j, struct hr_finding *f, const struct hr_setting *setting)
{
	struct hr_replayed replay;
	int r = hr__job_replay(j, setting, true, &replay);

	if (r < 0)
		j->error = r;
	if (r < 0 || replay.refusal != HR_REPLAY_OK)
		return false;
	f->gain_low = fmax(0, replay.recorded - replay.high);
	f->gain_high = fmax(0, replay.recorded - replay.low);
	if (setting->cores == HR_SETTING_SAME.cores && !setting->persistent)
		f->gain_high = fmin(f->gain_high, hr__most_gain(j));
	f->gain_low = fmin(f->gain_low, f->gain_high);
	return true;
}

static double usual_share(struct hr_training_job *j, enum hr_usual usual)
{
	struct hr_setting setting = HR_SETTING_SAME;
	struct hr_replayed replay;
	int r;

	if (j->usual[usual].known)
		return j->usual[usual].share;
	if (usual == HR_USUAL_WORKERS)
		setting.workers = HR_MORE * (j->workers > 0 ? j->workers : 1);
	else if (usual == HR_USUAL_CORES)
		setting.cores = HR_MORE * j->cores;
	else
		setting.io = (struct hr_multiple){HR_FASTER, HR_FASTER};
	r = hr__job_replay(j, &setting, true, &replay);
	if (r < 0)
		j->error = r;
	j->usual[usual].known = true;
	j->usual[usual].share =
	    r < 0 || replay.refusal != HR_REPLAY_OK || replay.doubt != HR_REPLAY_OK
		? INFINITY
		: (replay.recorded - replay.predicted) / j->wall;
	return j->usual[usual].share;
}

double hr__workers_save(struct hr_training_job *j)
{
	return usual_share(j, HR_USUAL_WORKERS) * j->wall;
}

void hr__avoid_workers(struct hr_training_job *j, struct hr_finding *f)
{
	double saved = hr__workers_save(j);

	if (saved < -hr__worth(j))
		f->avoid = hr__finding_text(j, "%u workers: the loops would take %s longer",
					    HR_MORE * (j->workers > 0 ? j->workers : 1),
					    hr__seconds(-saved).s);
}

void hr__avoid(struct hr_training_job *j, struct hr_finding *f, unsigned remedies,
	       const char *reason)
{
	for (unsigned usual = 0; usual < HR_USUAL_END; usual++)
		if ((remedies >> usual & 1) && usual_share(j, usual) > HR_WORTH_SHARE)
			return;
	f->avoid = reason;
}

/* Returns the next number in 1, 2, 3, 4, 6, 8, 12, 16, 24... */
static uint32_t more_workers(uint32_t w)
{
	if (w < 4)
		return w + 1;
	return (w & (w - 1)) == 0 ? w * 3 / 2 : w * 4 / 3;
}

/* Tries increasing numbers of workers up to `most`. A larger number must be better (HR_BETTER). */
static uint32_t best_workers(struct hr_training_job *j, uint32_t most)
{
	double best = INFINITY;
	uint32_t workers = j->workers;

	for (uint32_t w = j->workers > 0 ? j->workers : 1; w <= most && j->error == 0;
	     w = more_workers(w)) {
		struct hr_setting setting = HR_SETTING_SAME;
		struct hr_replayed replay;

		setting.workers = w;
		if (hr__job_replay(j, &setting, false, &replay) < 0) {
			j->error = -ENOMEM;
			break;
		}
		if (replay.refusal != HR_REPLAY_OK)
			break;
		best = fmin(best, replay.recorded);
		if (replay.predicted < (1 - HR_BETTER) * best) {
			best = replay.predicted;
			workers = w;
		}
	}
	return workers;
}

void hr__add_workers(struct hr_training_job *j, struct hr_finding *f, uint32_t most)
{
	uint32_t workers = j->other_kind ? j->workers : best_workers(j, most);
	struct hr_setting setting = HR_SETTING_SAME;

	if (workers == j->workers)
		return;
	setting.workers = workers;
	if (hr__predict(j, f, &setting) && f->gain_high > 0)
		f->action = hr__set_loader(j, "num_workers", workers, j->workers);
}

void hr__try_no_workers(struct hr_training_job *j, struct hr_finding *f)
{
	struct hr_setting setting = HR_SETTING_SAME;
	struct hr_finding none = *f;

	if (j->workers == 0 || j->other_kind)
		return;
	setting.workers = 0;
	if (!hr__predict(j, &none, &setting) || none.gain_low < hr__worth(j) ||
	    none.gain_low <= f->gain_high)
		return;
	f->gain_low = none.gain_low;
	f->gain_high = none.gain_high;
	f->action = hr__finding_text(j,
				     "%s: the training thread makes a batch in less time than it "
				     "waits for workers",
				     hr__set_loader(j, "num_workers", 0, j->workers));
}

uint32_t hr__whole_cores(const struct hr_training_job *j)
{
	return j->cores >= 1 ? (uint32_t)j->cores : 1;
}

void hr__advise_line(struct hr_training_job *j, struct hr_finding *f, bool setting)
{
	double sure = hr__line_seconds(j, f);
	const char *others = "";

	if (sure <= 0)
		return;
	if (setting && f->action != NULL && f->gain_low >= SETTING_FIRST * sure) {
		f->action = hr__finding_text(j, "%s, or make %s faster", f->action, j->line);
		return;
	}
	if (f->action != NULL && f->gain_high > 0)
		others = hr__finding_text(
		    j, "; or %s, which saves %s%s", f->action,
		    f->gain_low < 0.01 * f->gain_high
			? "up to "
			: hr__finding_text(j, "%s to ", hr__seconds(f->gain_low).s),
		    hr__seconds(f->gain_high).s);
	else if (f->action != NULL)
		others = hr__finding_text(j, ", or %s", f->action);
	f->action = hr__finding_text(j, "make %s faster%s", j->line, others);
	f->gain_low = 0;
	f->gain_high = fmax(f->gain_high, fmin(HR_REST * f->lost, hr__most_gain(j)));
}

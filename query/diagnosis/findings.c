/* SPDX-License-Identifier: Apache-2.0 */
#include "query/diagnosis/findings_internal.h"

#include <stdlib.h>

/* A training that makes no step, or was killed, has no more urgent problem. */
static bool is_urgent(const struct hr_finding *f)
{
	return f->cause == HR_FOUND_HANG || f->cause == HR_FOUND_FAILED;
}

static int by_loss(const void *a, const void *b)
{
	const struct hr_finding *x = a, *y = b;

	if (is_urgent(x) != is_urgent(y))
		return is_urgent(x) ? -1 : 1;
	return (x->lost < y->lost) - (x->lost > y->lost);
}

static void find_nothing(struct hr_training_job *j)
{
	const double *p = j->part[HR_PHASE_TRAIN];
	double computed =
	    p[HR_PART_COMPUTE] + p[HR_PART_OPTIMIZER] + p[HR_PART_BACKWARD] + p[HR_PART_COLLECTIVE];
	double start = 0, loop = 0, hidden = hr__job_part(j, HR_PART_WAIT_HIDDEN);
	struct hr_finding *f = hr__finding_new(j, HR_FOUND_NOTHING, 0);

	if (f == NULL)
		return;
	for (unsigned part = 0; part < HR_PART_END; part++) {
		start += j->part[HR_PHASE_START][part];
		loop += p[part];
	}
	f->evidence = hr__finding_text(
	    j,
	    "%.0f %% of the time is before the first loop; %.0f %% is in training loops, which "
	    "compute during %.0f %% of their time%s",
	    100 * start / j->wall, 100 * loop / j->wall, loop > 0 ? 100 * computed / loop : 0,
	    j->counters ? " (this includes reads and writes, because only counters were recorded)"
			: "");
	if (j->start_lines.first != NULL && start >= hr__worth(j))
		f->evidence = hr__finding_text(
		    j, "%s; before the first loop, the training thread was longest in %s",
		    f->evidence, j->start_lines.text);
	if (j->own_lines.first != NULL)
		f->evidence = hr__finding_text(
		    j, "%s; in loops, outside of the model, the training thread was longest in %s",
		    f->evidence, j->own_lines.text);
	if (j->own_lines.first_s >= hr__worth(j))
		f->action = hr__finding_text(
		    j, "if %s is not the model itself, make it faster, or do it seldom",
		    j->own_lines.first);
	if (hidden >= hr__worth(j))
		f->evidence = hr__finding_text(j,
					       "the loop waits for batches in %.0f %% of the time, "
					       "but the accelerator still works on the step before",
					       100 * hidden / j->wall);
}

static void add_evidence(struct hr_training_job *j, struct hr_finding *f, const char *text)
{
	f->evidence = f->evidence != NULL ? hr__finding_text(j, "%s; %s", f->evidence, text) : text;
}

/* Adds how busy the accelerators were, to findings about waits and to HR_FOUND_NOTHING. */
static void add_busy(struct hr_training_job *j, struct hr_finding *f)
{
	double asked = 0, busy = 0, hidden = hr__job_part(j, HR_PART_WAIT_HIDDEN);

	for (size_t i = j->first; i < j->end; i++) {
		asked += hr__job_has(j, i) ? j->d->lives.list[i].asked_ns : 0;
		busy += hr__job_has(j, i) ? j->d->lives.list[i].busy_ns : 0;
	}
	if (!hr_finding_is_wait(f->cause) && f->cause != HR_FOUND_NOTHING)
		return;
	if (f->cause != HR_FOUND_NOTHING && hidden >= hr__worth(j))
		add_evidence(j, f,
			     hr__finding_text(j,
					      "during another %s of waits, the accelerator still "
					      "worked, so they cost no time",
					      hr__seconds(hidden).s));
	if (asked > 0)
		add_evidence(
		    j, f,
		    hr__finding_text(j, "the accelerator was busy for %.0f %% of the time (NVML)",
				     100 * busy / asked));
}

static int find(struct hr_training_job *j)
{
	size_t first = j->to->n;
	struct hr_job_files files;

	hr__job_line(j);
	hr__job_files(j, &files);
	hr__find_hang(j);
	if (j->to->n == first)
		hr__find_failed(j);
	hr__find_waits(j, &files);
	hr__find_others(j, &files);
	hr__find_copies(j, &files);
	if (j->to->n == first)
		find_nothing(j);
	for (size_t i = first; i < j->to->n; i++) {
		add_busy(j, &j->to->list[i]);
		hr__finding_describe(j, &j->to->list[i]);
	}
	if (j->to->n == first)
		return j->error;
	qsort(j->to->list + first, j->to->n - first, sizeof(*j->to->list), by_loss);
	hr__avoid_workers(j, &j->to->list[first]);
	return j->error;
}

int hr_findings_make(const struct hr_diagnosis *d, struct hr_findings *ret)
{
	size_t next = 0; /* index of the first training process of the next job */
	int r = 0;

	for (size_t i = 0; r == 0 && i < d->lives.n; i++) {
		struct hr_training_job job;

		if (i < next ||
		    (d->scope.rank != HR_ANY_RANK && d->scope.rank != d->lives.list[i].rank))
			continue;
		r = hr__job_make(&job, d, i);
		job.to = ret;
		next = job.end;
		r = r < 0 ? r : find(&job);
		hr__job_replay_done(&job);
	}
	return r;
}

void hr_findings_done(struct hr_findings *f)
{
	free(f->list);
}

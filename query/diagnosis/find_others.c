/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <math.h>

#include "common/json_part.h"
#include "proto/args.h"
#include "query/diagnosis/findings_internal.h"
#include "query/tables/rows.h"

/*
 * The training thread is a finding if it computes other things than the model for at least
 * MAIN_FACTOR times as long as the model, and for at least the share MAIN_SHARE of the wall time.
 * Chosen, not measured: the time of the model is itself assumed.
 */
#define MAIN_FACTOR 2.0
#define MAIN_SHARE  0.2
/*
 * How many times as long as backward() the model computes. Assumed, not measured: the forward pass
 * takes half as long as backward(), which computes two products for each of its products.
 */
#define MODEL_BACKWARDS 1.5
/* The slow rank causes at least this share of the stalls, so that no second rank can be named. */
#define SLOW_RANK_SHARE 0.5
/* With fewer steps for each checkpoint, the evidence does not mention how often they occur. */
#define STEPS_LEAST 2

static void find_listing(struct hr_training_job *j, const struct hr_job_files *files)
{
	const double *p = j->part[HR_PHASE_START];
	struct hr_finding *f =
	    hr__finding_add(j, HR_FOUND_LISTING, p[HR_PART_OWN_METADATA] + p[HR_PART_OWN_READ]);

	if (f != NULL)
		f->object = hr__files_folder(j, files->own, HR_ITEM_OWN);
}

/*
 * The mean time in a step, in seconds, in which the training processes [first, end) do not wait for
 * batches or other ranks, and do not use files. `except`: leave out the process `one`.
 */
static double computes(const struct hr_diagnosis *d, size_t first, size_t end, size_t one,
		       bool except)
{
	double ns = 0, steps = 0;

	for (size_t i = first; i < end; i++) {
		const struct hr_cycles *c = &d->cycles[i];

		for (size_t k = 0; k < c->n && (i != one || !except); k++)
			ns += c->list[k].ns - c->list[k].delay - c->list[k].stall;
		steps += i != one || !except ? (double)c->n : 0;
	}
	return ns / 1e9 / fmax(1, steps);
}

/* The number of steps in which other ranks wait because this rank computes longer. */
static size_t slows(const struct hr_cycles *c)
{
	size_t n = 0;

	for (size_t i = 0; i < c->n; i++)
		n += c->list[i].slowed > 0;
	return n;
}

/* Returns a text with the CPU use of the slow rank's training thread; "": unknown. */
static const char *cpu_text(struct hr_training_job *j, size_t slowest)
{
	double own = hr_life_main_use(&j->d->lives.list[slowest]).share;

	return isnan(own)
		   ? ""
		   : hr__finding_text(
			 j, " (between waits, its training thread runs for %.0f %% of the time)",
			 100 * own);
}

/* Finds the rank that keeps other ranks waiting longest because it computes longer than they do. */
static void find_slow_rank(struct hr_training_job *j)
{
	const struct hr_diagnosis *d = j->d;
	double all = 0, most = 0;
	size_t slowest = 0;
	struct hr_finding *f;

	for (size_t i = j->first; i < j->end; i++) {
		double slowed = d->cycles[i].slowed / 1e9;

		if (!hr__job_has(j, i))
			continue;
		all += slowed;
		if (slowed > most) {
			most = slowed;
			slowest = i;
		}
	}
	if (most < SLOW_RANK_SHARE * all)
		return;
	f = hr__finding_add(j, HR_FOUND_SLOW_RANK, most / (double)j->lives);
	if (f == NULL)
		return;
	hr__finding_rank(j, f, slowest);
	f->evidence = hr__finding_text(
	    j,
	    "rank %d computes for %s in each step, the other ranks for %s%s; in %s of %s steps, "
	    "they wait for it in backward() or a collective",
	    f->rank, hr__seconds(computes(d, slowest, slowest + 1, slowest, false)).s,
	    hr__seconds(computes(d, j->first, j->end, slowest, true)).s, cpu_text(j, slowest),
	    hr__number((double)slows(&d->cycles[slowest])).s,
	    hr__number((double)d->cycles[slowest].n).s);
	f->action = hr__finding_text(
	    j,
	    "find out why rank %d computes longer: first look for work that only this rank does "
	    "(if rank == %d: logging, evaluation), then compare the sizes of its batches with "
	    "those of the others, then its node and accelerator; " HR_FIND_STACK,
	    f->rank, f->rank);
	/* Each other rank would save its waits for this rank (mean). */
	f->gain_high = HR_REST * most / fmax(1, (double)j->lives - 1);
	hr__avoid(j, f, 1 << HR_USUAL_STORAGE | 1 << HR_USUAL_WORKERS,
		  "faster storage or more workers: no rank waits for batches meanwhile");
}

/*
 * Finds a training thread that computes much outside backward() and optimizers: it probably makes
 * or converts batches.
 */
static void find_main(struct hr_training_job *j)
{
	const struct hr_diagnosis *d = j->d;
	double backward = j->part[HR_PHASE_TRAIN][HR_PART_BACKWARD], lost, cpu = 0;
	double model = MODEL_BACKWARDS * backward + j->part[HR_PHASE_TRAIN][HR_PART_OPTIMIZER];
	double between = backward + j->part[HR_PHASE_TRAIN][HR_PART_COMPUTE] +
			 j->part[HR_PHASE_TRAIN][HR_PART_OPTIMIZER];
	struct hr_finding *f;

	for (size_t i = j->first; i < j->end; i++)
		if (hr__job_has(j, i))
			cpu += hr_life_main_use(&d->lives.list[i]).share / (double)j->lives;
	lost = cpu * between - model;
	/* The negated comparison is also true if `lost` is unknown (NAN). */
	if (backward <= 0 || !(lost > MAIN_FACTOR * model) || lost < MAIN_SHARE * j->wall)
		return;
	f = hr__finding_add(j, HR_FOUND_HEAVY_MAIN, lost);
	if (f == NULL)
		return;
	f->evidence = hr__finding_text(
	    j,
	    "the training thread computes for %s in each step; backward() and the optimizer take "
	    "%s of that",
	    hr__seconds(cpu * between / fmax(1, j->waits)).s,
	    hr__seconds((backward + j->part[HR_PHASE_TRAIN][HR_PART_OPTIMIZER]) / fmax(1, j->waits))
		.s);
	hr__avoid(j, f, 1 << HR_USUAL_STORAGE | 1 << HR_USUAL_WORKERS,
		  "more workers or faster storage: the batches are ready");
}

static void find_own_mapped(struct hr_training_job *j, const struct hr_job_files *files)
{
	struct hr_finding *f =
	    hr__finding_add(j, HR_FOUND_OWN_MAPPED, hr__job_part(j, HR_PART_OWN_FAULT));

	if (f == NULL)
		return;
	hr__finding_place(j, f, files->mapped, HR_ITEM_MAPPED);
	f->evidence = "the kernel read pages of mapped files while the training thread waited "
		      "(major faults)";
}

/* Returns the path in the args of a region of kind checkpoint; NULL: it has no path. */
static const char *saved_path(struct hr_training_job *j, const Headrace__Regions *m,
			      const struct hr_region *g)
{
	const ProtobufCBinaryData *args = g->args > 0 ? &m->texts[g->args - 1] : NULL;
	struct hr_json_part path;
	char *text;

	if (args == NULL || g->kind != HR_REGION_CHECKPOINT ||
	    !hr_json_part_find(args->data, args->len, HR_ARGS_PATH, &path) ||
	    path.type != HR_JSON_STRING)
		return NULL;
	text = hr_pool_get(&j->d->q->pool, path.n + 1);
	if (text == NULL) {
		j->error = -ENOMEM;
		return NULL;
	}
	return hr__path_text(j, (uint8_t *)text, hr_json_part_text(&path, text));
}

/* Sets the object of the finding to the first path that the job saved, if the path is known. */
static void set_saved(struct hr_training_job *j, struct hr_finding *f, uint32_t stream)
{
	struct hr_frames frames;

	if (hr_regions_read(j->d->q, &j->d->q->streams[stream], &frames) < 0)
		return;
	for (size_t i = 0; i < frames.n && f->object == NULL; i++) {
		const Headrace__Regions *m = frames.list[i]->regions;

		for (size_t k = 0; k < m->n_key && f->object == NULL; k++) {
			struct hr_region region;

			hr_regions_get(m, k, &region);
			f->object = saved_path(j, m, &region);
		}
	}
	hr_frames_free(&frames);
}

static void find_checkpoint(struct hr_training_job *j)
{
	struct hr_finding *f =
	    hr__finding_add(j, HR_FOUND_CHECKPOINT, hr__job_part(j, HR_PART_CHECKPOINT));
	double n = 0, sum = 0, longest = 0, steps = 0;
	const char *often = "";

	if (f == NULL)
		return;
	for (size_t i = j->first; i < j->end; i++) {
		const struct hr_train_life *life = &j->d->lives.list[i];

		steps += hr__job_has(j, i) ? (double)j->d->cycles[i].n : 0;
		for (size_t k = 0; k < life->n && hr__job_has(j, i); k++) {
			double s = (double)(life->blocks[k].to - life->blocks[k].from) / 1e9;

			if (life->blocks[k].kind != HR_BLOCK_CHECKPOINT)
				continue;
			n++;
			sum += s;
			longest = fmax(longest, s);
		}
	}
	set_saved(j, f, j->stream);
	if (n > 0 && steps >= STEPS_LEAST * n)
		often = hr__finding_text(j, ", one in %s steps", hr__number(round(steps / n)).s);
	if (n > 0)
		f->evidence = hr__finding_text(
		    j, "number of checkpoints%s: %s%s; each takes %s on average, the longest %s",
		    j->lives > 1 ? " of a rank" : "", hr__number(n / (double)j->lives).s, often,
		    hr__seconds(sum / n).s, hr__seconds(longest).s);
	hr__avoid(j, f, 1 << HR_USUAL_WORKERS, "more workers: the training thread saves");
}

static void find_sync(struct hr_training_job *j, const struct hr_job_files *files)
{
	struct hr_finding *f = hr__finding_add(j, HR_FOUND_SYNC, hr__job_part(j, HR_PART_OWN_SYNC));

	if (f == NULL)
		return;
	f->object = hr__item_path(j, files->synced);
	if (files->syncs > 0)
		f->evidence =
		    hr__finding_text(j, "%s calls of fsync and related functions, %s each",
				     hr__number(files->syncs).s,
				     hr__seconds(f->lost * (double)j->lives / files->syncs).s);
	/* The writes before these calls also become faster. */
	f->gain_high += hr__job_part(j, HR_PART_OWN_WRITE);
}

static void find_own_io(struct hr_training_job *j, const struct hr_job_files *files)
{
	struct hr_finding *f;
	double own = 0;

	for (unsigned phase = HR_PHASE_TRAIN; phase < HR_PHASES; phase++)
		if (phase != HR_PHASE_VALIDATION)
			own += j->part[phase][HR_PART_OWN_READ] +
			       j->part[phase][HR_PART_OWN_WRITE] +
			       j->part[phase][HR_PART_OWN_METADATA];
	f = hr__finding_add(j, HR_FOUND_OWN_IO, own);
	if (f != NULL)
		f->object = hr__item_path(j, files->own);
}

static void find_validation(struct hr_training_job *j)
{
	double validation = 0;

	for (unsigned part = 0; part < HR_PART_END; part++)
		validation += j->part[HR_PHASE_VALIDATION][part];
	(void)hr__finding_add(j, HR_FOUND_VALIDATION, validation);
}

void hr__find_others(struct hr_training_job *j, const struct hr_job_files *files)
{
	find_listing(j, files);
	(void)hr__finding_add(j, HR_FOUND_IMPORTS, hr__job_part(j, HR_PART_IMPORT_IO));
	find_checkpoint(j);
	(void)hr__finding_add(j, HR_FOUND_RESTORE, hr__job_part(j, HR_PART_RESTORE));
	find_sync(j, files);
	find_own_io(j, files);
	find_own_mapped(j, files);
	find_slow_rank(j);
	find_main(j);
	find_validation(j);
}

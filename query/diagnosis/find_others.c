/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/json_part.h"
#include "proto/args.h"
#include "query/diagnosis/findings_internal.h"
#include "query/tables/rows.h"

/*
 * The slow rank causes at least this share of the stalls, and this many times as much as the mean
 * of the others. Chosen: no second rank can be named, and two ranks in turns have no slow one.
 */
#define SLOW_RANK_SHARE	 0.5
#define SLOW_RANK_FACTOR 2
/* Validations that compute for a smaller share of the wall time are no finding. Chosen. */
#define VALIDATION_SHARE 0.2
/* Validation that is in one line outside of the model for so long is that line's. Chosen. */
#define VALIDATION_LINE 0.3
/* With fewer steps for each checkpoint, the evidence does not mention how often they occur. */
#define STEPS_LEAST 2

/* Returns the time of a phase in operations of the training thread, and in the code around them. */
static double own_work(const struct hr_training_job *j, unsigned phase)
{
	const double *p = j->part[phase];

	return p[HR_PART_OWN_READ] + p[HR_PART_OWN_METADATA] + p[HR_PART_OWN_WRITE] +
	       p[HR_PART_COMPUTE] + p[HR_PART_OTHER];
}

static void find_listing(struct hr_training_job *j, const struct hr_job_files *files)
{
	const double *p = j->part[HR_PHASE_START];
	struct hr_finding *f =
	    hr__finding_add(j, HR_FOUND_LISTING, p[HR_PART_OWN_METADATA] + p[HR_PART_OWN_READ]);

	if (f == NULL)
		return;
	f->object = hr__files_folder(j, files->own, HR_ITEM_OWN);
	f->gain_high = fmin(f->gain_high, own_work(j, HR_PHASE_START));
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

/* Finds ranks of which another one computes longest in each step. */
static void find_turns(struct hr_training_job *j, double lost)
{
	struct hr_finding *f = hr__finding_add(j, HR_FOUND_TURNS, lost);
	size_t steps = 0, late = 0, ranks = 0;

	if (f == NULL)
		return;
	for (size_t i = j->first; i < j->end; i++) {
		size_t n = hr__job_has(j, i) ? slows(&j->d->cycles[i]) : 0;

		late += n;
		ranks += n > 0;
		steps = j->d->cycles[i].n > steps ? j->d->cycles[i].n : steps;
	}
	f->evidence = hr__finding_text(
	    j,
	    "in %s of %s steps, one of %s ranks computes longer than the others, which wait for "
	    "it in backward() or a collective",
	    hr__number((double)late).s, hr__number((double)steps).s, hr__number((double)ranks).s);
	hr__avoid(j, f, 1 << HR_USUAL_STORAGE | 1 << HR_USUAL_WORKERS,
		  "faster storage or more workers: no rank waits for batches meanwhile");
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
	if (most < SLOW_RANK_SHARE * all ||
	    most * ((double)j->lives - 1) < SLOW_RANK_FACTOR * (all - most)) {
		find_turns(j, all / (double)j->lives);
		return;
	}
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

/* Returns the path in the args of a region of this kind; NULL: it has no path. */
static const char *path_of(struct hr_training_job *j, const Headrace__Regions *m,
			   const struct hr_region *g, uint32_t kind)
{
	const ProtobufCBinaryData *args = g->args > 0 ? &m->texts[g->args - 1] : NULL;
	struct hr_json_part path;
	char *text;

	if (args == NULL || g->kind != kind ||
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

/* Sets the object of the finding to the first path of a region of this kind, if it is known. */
static void set_path(struct hr_training_job *j, struct hr_finding *f, uint32_t kind)
{
	struct hr_frames frames;

	if (hr_regions_read(j->d->q, &j->d->q->streams[j->stream], &frames) < 0)
		return;
	for (size_t i = 0; i < frames.n && f->object == NULL; i++) {
		const Headrace__Regions *m = frames.list[i]->regions;

		for (size_t k = 0; k < m->n_key && f->object == NULL; k++) {
			struct hr_region region;

			hr_regions_get(m, k, &region);
			f->object = path_of(j, m, &region, kind);
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
	set_path(j, f, HR_REGION_CHECKPOINT);
	if (n > 0 && steps >= STEPS_LEAST * n)
		often = hr__finding_text(j, ", one in %s steps", hr__number(round(steps / n)).s);
	if (n > 0)
		f->evidence = hr__finding_text(
		    j, "number of checkpoints%s: %s%s; each takes %s on average, the longest %s",
		    j->lives > 1 ? " of a rank" : "", hr__number(n / (double)j->lives).s, often,
		    hr__seconds(sum / n).s, hr__seconds(longest).s);
	hr__avoid(j, f, 1 << HR_USUAL_WORKERS, "more workers: the training thread saves");
}

static void find_restore(struct hr_training_job *j)
{
	struct hr_finding *f =
	    hr__finding_add(j, HR_FOUND_RESTORE, hr__job_part(j, HR_PART_RESTORE));

	if (f != NULL)
		set_path(j, f, HR_REGION_RESTORE);
}

/* Returns the mount with most files of the Python installation; 0: none is known. */
static uint32_t python_mount(const struct hr_stream *s)
{
	uint32_t files = 0, most = 0, *counts = calloc(s->n_mounts + 1, sizeof(*counts));

	if (counts == NULL || hr_stream_files(s, &files) < 0)
		files = 0;
	for (uint32_t i = 1; i <= files; i++) {
		struct hr_file_info info;

		if (hr_stream_file_at(s, i, false, &info) < 0 || info.scope == 0 ||
		    info.mount == 0 || info.mount >= s->n_mounts)
			continue;
		counts[info.mount]++;
		most = counts[info.mount] > counts[most] ? info.mount : most;
	}
	free(counts);
	return most;
}

/* Whether such a file system is usually on the node's own disk, or in its memory. */
static bool is_local(const duckdb_string_t *fs_type)
{
	static const char *const types[] = {"ext2", "ext3",	"ext4",	 "xfs",	  "btrfs",   "zfs",
					    "f2fs", "bcachefs", "tmpfs", "ramfs", "overlay", NULL};
	unsigned i = 0;

	while (types[i] != NULL && !hr__text_is(fs_type, types[i], strlen(types[i])))
		i++;
	return types[i] != NULL;
}

static void find_imports(struct hr_training_job *j)
{
	const struct hr_qstream *st = &j->d->q->streams[j->stream];
	struct hr_finding *f =
	    hr__finding_add(j, HR_FOUND_IMPORTS, hr__job_part(j, HR_PART_IMPORT_IO));
	const struct hr_qmount *mount = f != NULL ? hr_query_mount(st, python_mount(st->s)) : NULL;

	if (mount == NULL)
		return;
	f->object = f->mount = hr__finding_text(j, "%.*s", (int)mount->path.value.inlined.length,
						hr_string_text(&mount->path));
	if (!is_local(&mount->fs_type))
		return;
	f->evidence = hr__finding_text(
	    j, "they are on the file system %.*s, and were probably not in the page cache",
	    (int)mount->fs_type.value.inlined.length, hr_string_text(&mount->fs_type));
	f->action = "start it again before you change anything: the page cache has the files now";
	f->gain_low = f->gain_high = 0;
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
	double own = 0, work = 0;

	for (unsigned phase = HR_PHASE_TRAIN; phase < HR_PHASES; phase++) {
		if (phase == HR_PHASE_VALIDATION)
			continue;
		own += j->part[phase][HR_PART_OWN_READ] + j->part[phase][HR_PART_OWN_WRITE] +
		       j->part[phase][HR_PART_OWN_METADATA];
		work += own_work(j, phase);
	}
	f = hr__finding_add(j, HR_FOUND_OWN_IO, own);
	if (f == NULL)
		return;
	f->object = hr__item_path(j, files->own);
	f->gain_high = fmin(f->gain_high, work);
}

static void find_validation(struct hr_training_job *j)
{
	const struct hr_own_lines *lines = &j->validation_lines;
	double validation = 0, waits = 0;
	struct hr_finding *f;

	for (unsigned part = 0; part < HR_PART_END; part++) {
		double s = j->part[HR_PHASE_VALIDATION][part];

		validation += s;
		waits += hr_part_waits(part) ? s : 0;
	}
	if (validation - waits < VALIDATION_SHARE * j->wall)
		return;
	f = hr__finding_add(j, HR_FOUND_VALIDATION, validation - waits);
	if (f != NULL && lines->first_s >= VALIDATION_LINE * f->lost) {
		f->line = lines->where;
		f->action = hr__finding_text(
		    j, "make %s faster, or validate less often, or on fewer samples", lines->first);
		f->evidence = hr__finding_text(
		    j, "in validation, outside of the model, the training thread was longest in %s",
		    lines->text);
	} else if (f != NULL && waits >= hr__worth(j))
		f->evidence = hr__finding_text(
		    j,
		    "validations take %s, with waits for batches, which have causes of their own",
		    hr__seconds(validation).s);
}

void hr__find_others(struct hr_training_job *j, const struct hr_job_files *files)
{
	find_listing(j, files);
	find_imports(j);
	find_checkpoint(j);
	find_restore(j);
	find_sync(j, files);
	find_own_io(j, files);
	find_own_mapped(j, files);
	find_slow_rank(j);
	hr__find_compute(j);
	find_validation(j);
}

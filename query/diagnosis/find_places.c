/* SPDX-License-Identifier: Apache-2.0 */
#include <math.h>

#include "query/diagnosis/findings_internal.h"

/*
 * An operation on a slow file or mount, or in the first pass, takes this many times as long as
 * others. Chosen, not measured: it assumes that files of one mount differ by less.
 */
#define SLOW_FACTOR 4.0
#define MOST	    0.5 /* such a cause has at least this share of the waits for files */
/*
 * If the slow mount has more of the files, the few files elsewhere, such as a list of samples, are
 * no comparison.
 */
#define MOUNT_PERCENT 90u
/* The fewest files that one slow file is compared with, and operations on it */
#define FILES_MIN      3u
#define OPERATIONS_MIN 2

static void take_io(struct hr_training_job *j, struct hr_job_waits *w, double share)
{
	j->io_left *= 1 - share;
	w->read *= 1 - share;
	w->metadata *= 1 - share;
}

/* ---- one file, or one mount ---- */

struct slow {
	double share;	    /* of the waits for files */
	double own, others; /* what an operation takes, and one on other files */
};

/*
 * Compares a file or mount with all other files: `waited`, `used` and `operations` are its waits,
 * the time of its operations, and their number. False: it is not slow.
 */
static bool compare(const struct hr_job_files *f, double waited, double used, double operations,
		    struct slow *ret)
{
	ret->share = f->waited_s > 0 ? fmin(1, waited / f->waited_s) : 0;
	ret->own = hr__per_operation(used, operations);
	ret->others =
	    hr__per_operation(f->read_s + f->metadata_s - used, (double)f->operations - operations);
	return ret->share >= MOST && ret->own >= SLOW_FACTOR * ret->others;
}

/* Whether its bytes take as long as those of others: the file is only larger, or read again. */
static bool is_only_large(const struct hr_job_files *f, const struct hr_item *s)
{
	double own = (double)s->read_ns / 1e9, others = (double)(f->bytes - s->bytes);

	return s->bytes > 0 && others > 0 && own > (double)s->metadata_ns / 1e9 &&
	       own / (double)s->bytes < SLOW_FACTOR * (f->read_s - own) / others;
}

static void find_file(struct hr_training_job *j, struct hr_job_waits *w,
		      const struct hr_job_files *f)
{
	const struct hr_item *s = f->slowest;
	double n = s != NULL ? (double)(s->reads + s->opens + s->examined) : 0;
	struct hr_finding *found;
	struct slow slow;

	if (s == NULL || f->read_files < FILES_MIN || n < OPERATIONS_MIN || is_only_large(f, s) ||
	    !compare(f, (double)s->waited_ns / 1e9, (double)(s->read_ns + s->metadata_ns) / 1e9, n,
		     &slow))
		return;
	found = hr__finding_add(j, HR_FOUND_SLOW_FILE, slow.share * hr_job_waits_io(w));
	if (found == NULL)
		return;
	found->object = hr__item_path(j, s);
	found->mount = hr__item_mount(j, s);
	found->evidence = hr__finding_text(
	    j, "an operation on this file takes %s; on the %s other files that were read, %s",
	    hr__seconds(slow.own).s, hr__number((double)(f->read_files - (s->bytes > 0))).s,
	    hr__seconds(slow.others).s);
	hr__avoid(j, found, 1 << HR_USUAL_WORKERS,
		  "more workers: only the worker that reads this file is slow");
	take_io(j, w, slow.share);
}

/* Returns the mount with most files, other than `slow`. */
static const char *other_mount(const struct hr_job_files *f, const struct hr_job_mount *slow)
{
	const struct hr_job_mount *most = slow;

	for (size_t i = 0; i < f->n_mounts; i++)
		if (&f->mounts[i] != slow &&
		    (most == slow || f->mounts[i].read_files > most->read_files))
			most = &f->mounts[i];
	return most->path;
}

static void find_mount(struct hr_training_job *j, struct hr_job_waits *w,
		       const struct hr_job_files *f)
{
	const struct hr_job_mount *m = f->slowest_mount;
	struct hr_finding *found;
	struct slow slow;

	if (m == NULL || f->operations <= m->operations ||
	    !compare(f, m->waited_s, m->read_s + m->metadata_s, (double)m->operations, &slow) ||
	    m->read_files > MOUNT_PERCENT * f->read_files / 100)
		return;
	found = hr__finding_add(j, HR_FOUND_SLOW_MOUNT, slow.share * hr_job_waits_io(w));
	if (found == NULL)
		return;
	found->object = hr__files_folder(j, f->slowest, HR_ITEM_WAITED);
	found->mount = m->path;
	found->evidence = hr__finding_text(
	    j, "an operation on the %s files of this mount takes %s; on other files, %s",
	    hr__number((double)m->files).s, hr__seconds(slow.own).s, hr__seconds(slow.others).s);
	found->action =
	    hr__finding_text(j, "copy the files of %s to the storage of the other files (%s)",
			     m->path, other_mount(f, m));
	hr__avoid(j, found, 1 << HR_USUAL_CORES, "more cores: the workers wait for files");
	take_io(j, w, slow.share);
}

/* ---- the first pass ---- */

static void find_cold(struct hr_training_job *j, struct hr_job_waits *w,
		      const struct hr_job_files *f)
{
	struct hr_passes passes;
	struct hr_finding *found;
	double share;

	hr__job_passes(j, &passes);
	if (passes.later == 0 || passes.first_io < SLOW_FACTOR * passes.later_io)
		return;
	share = fmin(1, (passes.first_wait - passes.later_wait) / fmax(1e-9, hr_job_waits_io(w)));
	if (share < MOST)
		return;
	found = hr__finding_add(j, HR_FOUND_COLD_CACHE, share * hr_job_waits_io(w));
	if (found == NULL)
		return;
	hr__finding_place(j, found, f->slowest, HR_ITEM_WAITED);
	found->evidence =
	    hr__finding_text(j,
			     "a batch needs %s of I/O in the first pass, and %s in "
			     "later ones, which the page cache serves",
			     hr__seconds(passes.first_io).s, hr__seconds(passes.later_io).s);
	found->avoid = "a change for the sake of later passes: they hardly wait for files";
	take_io(j, w, share);
}

void hr__find_places(struct hr_training_job *j, struct hr_job_waits *w,
		     const struct hr_job_files *files)
{
	find_file(j, w, files);
	/* Files that are examined for each sample are not faster elsewhere, or are absent. */
	if (files->examined <= HR_EXAMINED * files->opens || w->metadata <= w->read)
		find_mount(j, w, files);
	find_cold(j, w, files);
}

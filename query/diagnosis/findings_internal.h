/* SPDX-License-Identifier: Apache-2.0 */
/*
 * findings_internal.h - shared by findings.c (jobs), find_waits.c (waits for batches) and
 * find_others.c (all other losses)
 */
#ifndef HEADRACE_QUERY_DIAGNOSIS_FINDINGS_INTERNAL_H
#define HEADRACE_QUERY_DIAGNOSIS_FINDINGS_INTERNAL_H

#include <stdarg.h>
#include <stdio.h>

#include "query/diagnosis/findings.h"
#include "query/diagnosis/replay.h"

#define HR_PHASES (HR_PHASE_END + 1u)

/* Remedies that people try first. */
enum hr_usual { HR_USUAL_WORKERS, HR_USUAL_CORES, HR_USUAL_STORAGE, HR_USUAL_END };

/* A job: means of its training processes, in seconds. */
struct hr_training_job {
	const struct hr_diagnosis *d;
	uint32_t stream;   /* one of its streams */
	size_t first, end; /* its lives in the diagnosis */
	size_t first_fetch, end_fetch, first_item, end_item;
	/* Its lives, each read when a replay first needs it; NULL: none was needed. */
	struct hr_recorded_life **recorded;
	size_t each;	      /* each n-th life is replayed, */
	double stalled_least; /* and those that stalled for less, in ns */
	size_t lives;	      /* those that the diagnosis is about */
	double wall, cores;
	double loop;  /* of `wall`, in training loops */
	double quota; /* the part of a CPU quota that a rank has, in cores; 0: no quota */
	/* Cores that a process and its workers kept busy, at most: what looks like computing may be a wait. */
	double used;
	double part[HR_PHASES][HR_PART_END];
	double loops, waits;	    /* numbers, of training loops */
	double all_loops;	    /* number of loops of all processes */
	uint32_t workers, prefetch; /* of the last training loop */
	bool persistent;
	bool counters; /* for some time, without single operations */
	/* What usual remedies would gain, as shares of `wall`, if `known`; INFINITY: not known. */
	struct {
		bool known;
		double share;
	} usual[HR_USUAL_END];
	struct hr_findings *to;
	int error;
};

/* Whether the diagnosis is about the rank of a life of the job. */
static inline bool hr__job_has(const struct hr_training_job *j, size_t life)
{
	return j->d->scope.rank == HR_ANY_RANK || j->d->scope.rank == j->d->lives.list[life].rank;
}
/* Whether a worker made this batch, a fetch of the job, for such a life. */
static inline bool hr__job_made(const struct hr_training_job *j, const struct hr_fetch *f)
{
	const struct hr_worker *w =
	    f->worker != HR_NO_FETCH ? &j->d->lives.workers[f->worker] : NULL;

	return w != NULL && (j->d->scope.rank == HR_ANY_RANK || j->d->scope.rank == w->rank);
}

/*
 * What the training loops waited for while a batch was made, in seconds. A finding takes its part, so
 * that later ones do not name the same time.
 */
struct hr_job_waits {
	double all; /* waits of training loops for batches, of any kind; constant */
	double read, metadata, other_io, cpu, core, fault, sleep, network, lock, asleep;
};

/* Without other_io. */
static inline double hr_job_waits_making(const struct hr_job_waits *w)
{
	return w->read + w->metadata + w->cpu + w->core + w->fault + w->sleep + w->network +
	       w->lock + w->asleep;
}

/* The time of a part in all phases but validation. */
double hr__job_part(const struct hr_training_job *j, enum hr_part part);

/*
 * Means of the job's ranks, or of some of them if there are many. If ranks stall for others,
 * the loops take as long as the slowest rank's without its stalls. `range`: as for hr_replay.
 * -ENOMEM.
 */
int hr__job_replay(struct hr_training_job *j, const struct hr_setting *setting, bool range,
		   struct hr_replayed *ret);
void hr__job_replay_done(struct hr_training_job *j);

/* NULL: the loss is too small to mention, or (j->error) out of memory. */
struct hr_finding *hr__finding_add(struct hr_training_job *j, enum hr_finding_cause cause,
				   double lost);

/* A text in the query's pool; NULL: out of memory (j->error). */
__attribute__((format(printf, 2, 3))) const char *hr__finding_text(struct hr_training_job *j,
								   const char *format, ...);

/* find_waits.c */
struct hr_job_files;
void hr__find_waits(struct hr_training_job *j, const struct hr_job_files *files);
/* The gain of a setting, at most all waits. False: the replay does not know it. */
bool hr__predict(struct hr_training_job *j, struct hr_finding *f, const struct hr_setting *setting);
/* If more workers (at most `most`) would help: the action, and its gain. */
void hr__add_workers(struct hr_training_job *j, struct hr_finding *f, uint32_t most);
/* Sets f->avoid if usual remedies (bits 1 << enum hr_usual) would not help in replays. */
void hr__avoid(struct hr_training_job *j, struct hr_finding *f, unsigned remedies,
	       const char *reason);
uint32_t hr__whole_cores(const struct hr_training_job *j);

/* ---- find_files.c: what the fetches of a job have in common ---- */

struct hr_job_mount {
	const char *path; /* in the query's pool */
	size_t files, read_files;
	uint64_t operations;
	double read_s, metadata_s, waited_s;
};

/* Operations are reads, opens and examinations. */
struct hr_job_files {
	size_t files, read_files; /* used; with reads that returned data */
	uint64_t operations, data_reads, opens, examined;
	uint64_t bytes, extent; /* read; sizes of the files, as far as they were read */
	double read_s, metadata_s, waited_s, own_s;
	const struct hr_item *slowest;	/* with most waited_ns; NULL: none */
	const struct hr_item *own;	/* with most own_ns; NULL: none */
	const struct hr_item *synced;	/* with most own_sync_ns; NULL: none */
	const struct hr_item *mapped;	/* with most mapped_bytes; NULL: none */
	struct hr_job_mount mounts[16]; /* the first ones */
	size_t n_mounts;
	const struct hr_job_mount *slowest_mount; /* with most waited_s; NULL: none */
};
void hr__job_files(struct hr_training_job *j, struct hr_job_files *ret);
/* Its path, and the mount it lies on, as texts in the query's pool; "" if unknown. */
const char *hr__item_path(struct hr_training_job *j, const struct hr_item *item);
const char *hr__item_mount(struct hr_training_job *j, const struct hr_item *item);
/*
 * The deepest folder that has most of an amount of all files. It contains `most`, the file with most
 * of it. If only one file is mapped, that file.
 */
enum hr_item_amount {
	HR_ITEM_WAITED, /* time for which training threads waited */
	HR_ITEM_OWN,	/* time of training threads outside fetches */
	HR_ITEM_MAPPED	/* mapped bytes, without shared memory */
};
const char *hr__files_folder(struct hr_training_job *j, const struct hr_item *most,
			     enum hr_item_amount which);

/* The first pass over each loader, and later ones. Seconds. */
struct hr_passes {
	size_t later;		       /* number of later passes; 0: nothing else is known */
	double first_io, later_io;     /* I/O of a batch */
	double first_wait, later_wait; /* waits of a rank for I/O in a pass */
};
void hr__job_passes(const struct hr_training_job *j, struct hr_passes *ret);

/* ---- other causes than those of find_waits.c ---- */

/* find_places.c: one file, one mount or the first pass is slow. Before hr__find_uneven. */
void hr__find_places(struct hr_training_job *j, struct hr_job_waits *w,
		     const struct hr_job_files *files);
/* find_uneven.c: one worker, or single batches, are slow. Before hr__find_reads. */
void hr__find_uneven(struct hr_training_job *j, struct hr_job_waits *w);
/* find_reads.c: all other I/O of fetches. */
void hr__find_reads(struct hr_training_job *j, struct hr_job_waits *w,
		    const struct hr_job_files *files);
void hr__find_others(struct hr_training_job *j, const struct hr_job_files *files);

#endif

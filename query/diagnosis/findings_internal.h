/* SPDX-License-Identifier: Apache-2.0 */
/*
 * findings_internal.h - shared by findings.c (jobs), find_waits.c (waits for batches) and
 * find_others.c (all other losses)
 */
#ifndef HEADRACE_QUERY_DIAGNOSIS_FINDINGS_INTERNAL_H
#define HEADRACE_QUERY_DIAGNOSIS_FINDINGS_INTERNAL_H

#include <stdarg.h>
#include <stdio.h>

#include "common/text.h"
#include "query/diagnosis/findings.h"
#include "query/diagnosis/replay.h"

#define HR_PHASES (HR_PHASE_END + 1u)

/* Remedies that people try first. */
enum hr_usual { HR_USUAL_WORKERS, HR_USUAL_CORES, HR_USUAL_STORAGE, HR_USUAL_END };

/* A job: means of its training processes, in seconds. */
struct hr_training_job {
	const struct hr_diagnosis *d;
	uint32_t stream;   /* one of its streams */
	size_t first, end; /* positions of its lives in the diagnosis */
	size_t first_fetch, end_fetch, first_item, end_item;
	/* Its lives as replays need them. NULL: no replay yet, or the life is not replayed. */
	struct hr_recorded_life **recorded;
	/* Lives to replay: each n-th one, and those that stalled for less than this, in ns. */
	size_t each;
	double stalled_least;
	size_t lives; /* how many of its lives the diagnosis is about */
	double wall, cores;
	double loop;  /* the part of `wall` in training loops */
	double quota; /* a rank's share of a CPU quota, in cores; 0: no quota */
	/*
	 * Upper limit of the cores that a process and its workers kept busy. Not exact, because
	 * time that counts as computing may be a wait.
	 */
	double used;
	double part[HR_PHASES][HR_PART_END];
	double loops, waits;	    /* number of training loops, and of waits in them */
	double all_loops;	    /* number of loops of all processes */
	uint32_t workers, prefetch; /* settings of the last training loop */
	bool persistent;
	/* At times, only counters were recorded, so there are no single operations. */
	bool counters;
	/*
	 * The predicted gain of each usual remedy, as a share of `wall`; INFINITY: unpredictable.
	 * `known`: `share` has been computed.
	 */
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
/* Whether a worker made this batch of the job for a rank that the diagnosis is about. */
static inline bool hr__job_made(const struct hr_training_job *j, const struct hr_fetch *f)
{
	const struct hr_worker *w =
	    f->worker != HR_NO_FETCH ? &j->d->lives.workers[f->worker] : NULL;

	return w != NULL && (j->d->scope.rank == HR_ANY_RANK || j->d->scope.rank == w->rank);
}

/*
 * What the training loops waited for while a batch was made, in seconds. Each finding subtracts the
 * time that it counts, so that later findings do not count it again.
 */
struct hr_job_waits {
	double all; /* waits of training loops for batches, of any kind; constant */
	double read, metadata, other_io, cpu, core, fault, sleep, network, lock, asleep;
};

/* The sum of these waits without other_io. */
static inline double hr_job_waits_making(const struct hr_job_waits *w)
{
	return w->read + w->metadata + w->cpu + w->core + w->fault + w->sleep + w->network +
	       w->lock + w->asleep;
}

/* The time of a part in all phases but validation. */
double hr__job_part(const struct hr_training_job *j, enum hr_part part);

/*
 * Replays all ranks of the job, or some of them if there are many, and returns means. If ranks
 * stall for each other, the result is the time of the slowest rank without its stalls. `range`: as
 * for hr_replay. -ENOMEM.
 */
int hr__job_replay(struct hr_training_job *j, const struct hr_setting *setting, bool range,
		   struct hr_replayed *ret);
void hr__job_replay_done(struct hr_training_job *j);

/* Adds a finding. NULL: the loss is too small to mention, or (j->error) memory is short. */
struct hr_finding *hr__finding_add(struct hr_training_job *j, enum hr_finding_cause cause,
				   double lost);

/* A text in the query's pool; NULL: out of memory (j->error). */
__attribute__((format(printf, 2, 3))) const char *hr__finding_text(struct hr_training_job *j,
								   const char *format, ...);

/* A duration and a number as texts, for hr__finding_text. */
static inline struct hr_human hr__seconds(double s)
{
	return hr_text_duration((uint64_t)(1e9 * s));
}
static inline struct hr_human hr__number(double n)
{
	return hr_text_count((uint64_t)n);
}

/* The sentence about how to find the code of a cause, for which headrace knows no line. */
#define HR_FIND_STACK                                                                              \
	"to find the line, run it again, and use `py-spy dump --pid PID` meanwhile (`headrace "    \
	"top "                                                                                     \
	"--by process` lists the PIDs)"

/* find_waits.c */
struct hr_job_files;
void hr__find_waits(struct hr_training_job *j, const struct hr_job_files *files);
/*
 * Sets the gain of a finding to the predicted gain of a setting. False: a replay cannot predict it.
 */
bool hr__predict(struct hr_training_job *j, struct hr_finding *f, const struct hr_setting *setting);
/*
 * Seconds that twice as many workers would save; INFINITY: a replay cannot predict it, or its result
 * is doubtful.
 */
double hr__workers_save(struct hr_training_job *j);
double
hr__worth(const struct hr_training_job *j); /* seconds; a change that saves less is not worth it */
/* Seconds that a change can save at most if it does not make the training itself faster. */
double hr__most_gain(const struct hr_training_job *j);
/* Sets the action and its gain if more workers (at most `most`) would help. */
void hr__add_workers(struct hr_training_job *j, struct hr_finding *f, uint32_t most);
/*
 * Sets f->avoid to `reason` if, in replays, none of these usual remedies (bits 1 << enum hr_usual)
 * helps.
 */
void hr__avoid(struct hr_training_job *j, struct hr_finding *f, unsigned remedies,
	       const char *reason);
uint32_t hr__whole_cores(const struct hr_training_job *j);

/* ---- find_files.c: the files that a job used ---- */

struct hr_job_mount {
	const char *path; /* in the query's pool */
	size_t files, read_files;
	uint64_t operations;
	double read_s, metadata_s, waited_s;
};

/* The files that a job used. `operations` counts reads, opens and examinations. */
struct hr_job_files {
	size_t files, read_files; /* files used; files of which a read returned data */
	uint64_t operations, data_reads, opens, examined;
	uint64_t bytes, extent; /* bytes read; sum of the ends of the farthest reads */
	double read_s, metadata_s, waited_s, own_s;
	double syncs;			/* number of fsync and related calls of training threads */
	const struct hr_item *slowest;	/* the file with most waited_ns; NULL: none */
	const struct hr_item *own;	/* the file with most own_ns; NULL: none */
	const struct hr_item *synced;	/* the file with most own_sync_ns; NULL: none */
	const struct hr_item *mapped;	/* the file with most mapped_bytes; NULL: none */
	struct hr_job_mount mounts[16]; /* at most 16, in the order in which they were found */
	size_t n_mounts;
	const struct hr_job_mount *slowest_mount; /* the mount with most waited_s; NULL: none */
};
void hr__job_files(struct hr_training_job *j, struct hr_job_files *ret);
/*
 * The path of a file, and the mount on which the file lies, as texts in the query's pool; "" if
 * unknown.
 */
const char *hr__item_path(struct hr_training_job *j, const struct hr_item *item);
const char *hr__item_mount(struct hr_training_job *j, const struct hr_item *item);
/*
 * Returns the deepest folder whose files have almost all of an amount. `most` is a file in it, with
 * the largest amount. If only one file is mapped, HR_ITEM_MAPPED returns this file itself.
 */
enum hr_item_amount {
	HR_ITEM_WAITED, /* time for which training threads waited for the file */
	HR_ITEM_OWN,	/* time of training threads outside fetches */
	HR_ITEM_MAPPED	/* mapped bytes, without shared memory */
};
const char *hr__files_folder(struct hr_training_job *j, const struct hr_item *most,
			     enum hr_item_amount which);

/* Means of the first pass over each loader, and of later passes, in seconds. */
struct hr_passes {
	size_t later; /* number of later passes; 0: later_io and later_wait are not set */
	double first_io, later_io;     /* I/O of a batch */
	double first_wait, later_wait; /* waits of a rank for I/O in a pass */
};
void hr__job_passes(const struct hr_training_job *j, struct hr_passes *ret);

/* ---- causes that find_waits.c does not find itself ---- */

/* find_places.c: finds a slow file or mount, or a slow first pass. Call before hr__find_uneven. */
void hr__find_places(struct hr_training_job *j, struct hr_job_waits *w,
		     const struct hr_job_files *files);
/* find_uneven.c: finds a slow worker, or single slow batches. Call it before hr__find_reads. */
void hr__find_uneven(struct hr_training_job *j, struct hr_job_waits *w);
/* find_reads.c: finds all other waits for I/O of fetches. */
void hr__find_reads(struct hr_training_job *j, struct hr_job_waits *w,
		    const struct hr_job_files *files);
void hr__find_others(struct hr_training_job *j, const struct hr_job_files *files);

#endif

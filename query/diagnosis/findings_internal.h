/* SPDX-License-Identifier: Apache-2.0 */
/* findings_internal.h - shared by the files that make findings */
#ifndef HEADRACE_QUERY_DIAGNOSIS_FINDINGS_INTERNAL_H
#define HEADRACE_QUERY_DIAGNOSIS_FINDINGS_INTERNAL_H

#include <stdarg.h>
#include <stdio.h>

#include "common/text.h"
#include "query/diagnosis/findings.h"
#include "query/diagnosis/replay.h"

#define HR_PHASES (HR_PHASE_END + 1u)

/*
 * The thresholds of the find_*.c files distinguish causes, and were chosen.
 * tests/bench/scenarios.py measures them as a whole: the first finding is the planted cause in 76
 * of 76 jobs, and none of 40 jobs without a bottleneck has a finding (docs/limitations.md). A
 * comment names the measurement of a single number, if there is one.
 */

/* A loss or gain of a smaller share of the wall time is not worth a change. Chosen. */
#define HR_WORTH_SHARE 0.05
/*
 * Without a loss, the rest also runs a little faster: 9 of 37 planted jobs saved 3 to 10 % more
 * than the loss.
 */
#define HR_REST 1.1
/*
 * The best of several settings makes the loops shorter by at least this share than a smaller
 * setting. Chosen, not measured: a little more than the median error of predictions, 2 %
 * (docs/limitations.md).
 */
#define HR_BETTER 0.03
/*
 * Assumed, not measured: on faster storage, or with fewer and larger operations, I/O takes this
 * share of its time.
 */
#define HR_FASTER 0.1
/* A job that uses a smaller share of its cores leaves some idle. Chosen. */
#define HR_USED_SHARE 0.7
/* Replays try this multiple of the cores or workers. */
#define HR_MORE 2
/* Files that are examined so many times as often as opened: for each sample, without need. */
#define HR_EXAMINED 3u
/* Workers that do not compute can be more than the cores: at most this many for each. Chosen. */
#define HR_WORKERS_PER_CORE 4

/* With fewer samples, the shares of lines are not known. Chosen. */
#define HR_SAMPLES_LEAST 10

/* Remedies that users often try first. */
enum hr_usual { HR_USUAL_WORKERS, HR_USUAL_CORES, HR_USUAL_STORAGE, HR_USUAL_END };

/* The lines of Python in which training threads were outside of waits, the model and regions. */
struct hr_own_lines {
	const char *first; /* the longest; NULL: not known */
	double first_s;
	const char *where; /* the longest, with its time */
	const char *text;  /* the longest ones, with their times */
};

/* The training processes of a job. Times are means over these processes, in seconds. */
struct hr_training_job {
	const struct hr_diagnosis *d;
	uint32_t stream;   /* any stream of the job */
	size_t first, end; /* the job's training processes: indexes in d->lives.list */
	size_t first_fetch, end_fetch, first_item, end_item;
	/* The input of replays for each training process; NULL: not read, or not replayed. */
	struct hr_recorded_life **recorded;
	/* Every n-th training process is replayed, and those that stalled for less (ns). */
	size_t each;
	double stalled_least;
	size_t lives; /* number of the job's processes that the diagnosis is about */
	double wall, cores;
	double loop;  /* the part of `wall` in training loops */
	double quota; /* cores that a CPU quota leaves to each rank; 0: no quota */
	/*
	 * How many cores a process and its workers kept busy at most. The true number can be lower,
	 * because time that counts as computing may be a wait.
	 */
	double used;
	double part[HR_PHASES][HR_PART_END];
	/* mean numbers of training loops, of waits in these loops, and of waits in all loops */
	double loops, batches, waits;
	double all_loops;	    /* sum of the loops of all processes */
	uint32_t workers, prefetch; /* settings of the last training loop */
	bool persistent, iterable;
	bool other_kind, own; /* as in hr_loop, of the last training loop */
	const char *made;     /* the same, escaped */
	/* The share of the waits for files that no finding has yet. */
	double io_left;
	/* Waits of loops while a batch was made; whether fetches in them have samples. */
	double making;
	bool sampled;
	bool unsampled; /* none has, although one was long enough: stacks were not recorded */
	/* The line of Python in which its maker was for most of `making`; NULL: not known. */
	const char *line;
	double line_share; /* of `making` */
	const char *lines; /* the longest lines, with their shares; NULL: not known */
	/* In loops of training, before the first loop, and in validation. */
	struct hr_own_lines own_lines, start_lines, validation_lines;
	/* That called backward(), step() of an optimizer, and a compiler (HR_OWN_COMPILER). */
	struct hr_own_lines backward_lines, optimizer_lines, compiler_lines;
	uint64_t model_samples; /* samples of training threads in the model */
	/* For a time, only counters were recorded, without single operations. */
	bool counters;
	double hung; /* the part of HR_PART_WAIT_UNKNOWN that is a hang */
	/* The predicted gain of each usual remedy as a share of `wall`; INFINITY: unknown. */
	struct {
		bool known;
		double share;
	} usual[HR_USUAL_END];
	struct hr_findings *to;
	int error;
};

/* Whether the diagnosis is about this training process of the job. */
static inline bool hr__job_has(const struct hr_training_job *j, size_t life)
{
	return j->d->scope.rank == HR_ANY_RANK || j->d->scope.rank == j->d->lives.list[life].rank;
}
/* Whether workers make the batches, and not threads of the training process. */
static inline bool hr__has_workers(const struct hr_training_job *j)
{
	return j->workers > 0 || (j->other_kind && !j->own);
}
/* Whether a worker made this batch, for a rank that the diagnosis is about. */
static inline bool hr__job_made(const struct hr_training_job *j, const struct hr_fetch *f)
{
	const struct hr_worker *w =
	    f->worker != HR_NO_FETCH ? &j->d->lives.workers[f->worker] : NULL;

	return w != NULL && (j->d->scope.rank == HR_ANY_RANK || j->d->scope.rank == w->rank);
}

/*
 * What the loops of training and validation waited for while workers made a batch, in seconds. Each
 * finding subtracts
 * the time that it reports, so that no later finding reports the same time.
 */
struct hr_job_waits {
	double all; /* all waits of training loops for batches; findings do not change it */
	double read, metadata, other_io, cpu, core, fault, sleep, network, lock, asleep;
};

/* The sum of these waits, without `all` and `other_io`. */
static inline double hr_job_waits_making(const struct hr_job_waits *w)
{
	return w->read + w->metadata + w->cpu + w->core + w->fault + w->sleep + w->network +
	       w->lock + w->asleep;
}

static inline double hr_job_waits_io(const struct hr_job_waits *w)
{
	return w->read + w->metadata;
}

/* The mean time of an operation. */
static inline double hr__per_operation(double seconds, double operations)
{
	return seconds / (operations > 0 ? operations : 1);
}

/* Returns a process of the job. */
static inline const struct hr_process *hr__job_process(const struct hr_training_job *j,
						       uint32_t stream, uint64_t proc)
{
	return hr_stream_process(j->d->q->streams[stream].s, proc);
}

/* Whether the job leaves cores idle, so that a thread that has none waits for other programs. */
static inline bool hr__leaves_cores(const struct hr_training_job *j)
{
	return j->cores > 0 && j->used < HR_USED_SHARE * j->cores;
}

/* Returns the seconds that a change must save, or a cause must take, to be worth it. */
static inline double hr__worth(const struct hr_training_job *j)
{
	return HR_WORTH_SHARE * j->wall;
}

/* ---- training_job.c ---- */

/*
 * Computes the means over all training processes of the job to which d->lives.list[life] belongs.
 * -ENOMEM, -EINTR.
 */
int hr__job_make(struct hr_training_job *j, const struct hr_diagnosis *d, size_t life);
/* Returns the time of a part in all phases except validation. */
double hr__job_part(const struct hr_training_job *j, enum hr_part part);
/* Returns the time of a part in the loops of the training and of validations. */
double hr__loop_part(const struct hr_training_job *j, enum hr_part part);
/* Returns the waits of these loops, before any finding. */
struct hr_job_waits hr__job_waits(const struct hr_training_job *j);

/* job_line.c: sets what samples of stacks show (making to model_samples). -ENOMEM: j->error. */
void hr__job_line(struct hr_training_job *j);

/* ---- job_replay.c ---- */

/*
 * Replays all ranks of the job, or some of them if there are many, and returns means. If ranks
 * stall for each other, the times are those of the slowest rank, without its stalls. hr_replay
 * explains `range`. -ENOMEM.
 */
int hr__job_replay(struct hr_training_job *j, const struct hr_setting *setting, bool range,
		   struct hr_replayed *ret);
void hr__job_replay_done(struct hr_training_job *j);

/* ---- finding.c ---- */

/* Adds a finding with the gain and action of causes.def. NULL (j->error): memory is short. */
struct hr_finding *hr__finding_new(struct hr_training_job *j, enum hr_finding_cause cause,
				   double lost);
/* The same, if the loss is large enough for a finding; otherwise NULL. */
struct hr_finding *hr__finding_add(struct hr_training_job *j, enum hr_finding_cause cause,
				   double lost);

/* Sets the rank of a finding to that of the training process with this index in d->lives.list. */
void hr__finding_rank(struct hr_training_job *j, struct hr_finding *f, size_t life);

/* Sets what follows from the other members: rank, place, meaning, gain_note. */
void hr__finding_describe(struct hr_training_job *j, struct hr_finding *f);
/* Returns the seconds that certainly belong to the finding's loss and to j->line; 0: too few. */
double hr__line_seconds(const struct hr_training_job *j, const struct hr_finding *f);
/* Returns the end of an action, "; ...", for a cause whose line must be found; "": it is known. */
const char *hr__find_line(struct hr_training_job *j, const struct hr_finding *f);
/* Returns the advice to change a setting of the DataLoader, with the line that made it. */
const char *hr__set_loader(struct hr_training_job *j, const char *name, uint32_t to, uint32_t now);
/* Returns the action of a cause in causes.def. NULL: it has none. */
const char *hr__cause_action(enum hr_finding_cause cause);
/* Returns the advice to raise the CPU quota of the job. */
const char *hr__raise_quota(struct hr_training_job *j);
/* Formats a text in the query's pool. Returns NULL and sets j->error if memory is short. */
__attribute__((format(printf, 2, 3))) const char *hr__finding_text(struct hr_training_job *j,
								   const char *format, ...);

static inline struct hr_human hr__seconds(double s)
{
	return hr_text_duration((uint64_t)(1e9 * s));
}
static inline struct hr_human hr__number(double n)
{
	return hr_text_count((uint64_t)n);
}

/* The advice for causes whose line of code headrace does not know. */
#define HR_FIND_STACK                                                                              \
	"to find the line, run it again, and use `py-spy dump --pid PID` meanwhile "               \
	"(`headrace top --by process` lists the PIDs)"

/* ---- gains.c ---- */

/* Sets the gain of a finding to the one that a replay predicts. False: there is no prediction. */
bool hr__predict(struct hr_training_job *j, struct hr_finding *f, const struct hr_setting *setting);
/*
 * Returns the seconds that twice as many workers would save; INFINITY: there is no sure prediction.
 */
double hr__workers_save(struct hr_training_job *j);
/* Returns the most seconds that a change saves if it does not make the training itself faster. */
double hr__most_gain(const struct hr_training_job *j);
/* Advises more workers (at most `most`) and predicts the gain, if they would help. */
void hr__add_workers(struct hr_training_job *j, struct hr_finding *f, uint32_t most);
/* Sets f->avoid if, in replays, none of these remedies (bits 1 << enum hr_usual) helps. */
void hr__avoid(struct hr_training_job *j, struct hr_finding *f, unsigned remedies,
	       const char *reason);
/* Replaces f->avoid if more workers make the job slower in a replay. */
void hr__avoid_workers(struct hr_training_job *j, struct hr_finding *f);
/* Advises to use no workers, if that certainly saves more than the action that the finding has. */
void hr__try_no_workers(struct hr_training_job *j, struct hr_finding *f);
uint32_t hr__whole_cores(const struct hr_training_job *j);
/*
 * If the loss is in j->line, advises to make it faster: first, unless the action that the finding
 * has is a `setting` of the loader that saves enough.
 */
void hr__advise_line(struct hr_training_job *j, struct hr_finding *f, bool setting);

/* ---- find_files.c: the files that a job used ---- */

struct hr_job_mount {
	const char *path; /* in the query's pool */
	size_t files, read_files;
	uint64_t operations;
	double read_s, metadata_s, waited_s;
};

/* The files that the workers of a job used. `operations`: reads of data, opens, examinations. */
struct hr_job_files {
	size_t files, read_files; /* all files, and those of which a read returned data */
	uint64_t operations, data_reads, opens, examined;
	uint64_t bytes; /* that were read */
	/* Files of which the highest offset that was read is known, its sum, and bytes read of them. */
	size_t sized_files;
	uint64_t extent, sized_bytes;
	double read_s, metadata_s, waited_s;
	double syncs;			 /* number of fsync and related calls of training threads */
	const struct hr_item *slowest;	 /* the file with most waited_ns; NULL: none */
	const struct hr_item *most_read; /* the file with most bytes; NULL: none */
	const struct hr_item *own;	 /* the file with most own_ns; NULL: none */
	const struct hr_item *synced;	 /* the file with most own_sync_ns; NULL: none */
	const struct hr_item *mapped;	 /* the file with most mapped_bytes; NULL: none */
	struct hr_job_mount mounts[16];	 /* further mounts are ignored */
	size_t n_mounts;
	const struct hr_job_mount *slowest_mount; /* the mount with most waited_s; NULL: none */
};
void hr__job_files(struct hr_training_job *j, struct hr_job_files *ret);
/* Return the path of a file, and the path of its mount, in the query's pool; "": unknown. */
const char *hr__item_path(struct hr_training_job *j, const struct hr_item *item);
const char *hr__item_mount(struct hr_training_job *j, const struct hr_item *item);
/* Returns a path as a text in the query's pool, with special characters escaped. */
const char *hr__path_text(struct hr_training_job *j, const uint8_t *path, size_t bytes);
/* An amount of a file, for hr__files_folder(). */
enum hr_item_amount {
	HR_ITEM_WAITED, /* time for which training loops waited for the file */
	HR_ITEM_OWN,	/* time of training threads outside fetches */
	HR_ITEM_MAPPED	/* mapped bytes, without shared memory */
};
/*
 * Returns the deepest folder whose files have almost all of the amount. `most` is the file with the
 * largest amount. If a single file is mapped, HR_ITEM_MAPPED returns the path of this file instead.
 */
const char *hr__files_folder(struct hr_training_job *j, const struct hr_item *most,
			     enum hr_item_amount which);
/* Sets the object of a finding to this folder, and its mount to that of `most`. */
void hr__finding_place(struct hr_training_job *j, struct hr_finding *f, const struct hr_item *most,
		       enum hr_item_amount which);

/* Means over the first passes over all loaders, and over later passes, in seconds. */
struct hr_passes {
	size_t later; /* number of later passes; if it is 0, later_io and later_wait are not set */
	double first_io, later_io;
	double first_wait, later_wait; /* waits of a rank for I/O in a pass */
};
void hr__job_passes(const struct hr_training_job *j, struct hr_passes *ret);

/* ---- causes ---- */

/* find_hang.c: finds why the training makes no step now, or made none until a signal ended it. */
void hr__find_hang(struct hr_training_job *j);
/* find_failed.c: finds the signal or the exception for which the training failed. */
void hr__find_failed(struct hr_training_job *j);
void hr__find_waits(struct hr_training_job *j, const struct hr_job_files *files);
void hr__find_others(struct hr_training_job *j, const struct hr_job_files *files);
/* find_compute.c: a part of hr__find_others(). */
void hr__find_compute(struct hr_training_job *j);
/* find_reads.c: finds workers of which each reads all data. */
void hr__find_copies(struct hr_training_job *j, const struct hr_job_files *files);
/* The next three are parts of hr__find_waits(). */

/* find_places.c: finds a slow file, mount or first pass. Call it before hr__find_uneven. */
void hr__find_places(struct hr_training_job *j, struct hr_job_waits *w,
		     const struct hr_job_files *files);
/* find_uneven.c: finds a slow worker, or single slow batches. Call it before hr__find_reads. */
void hr__find_uneven(struct hr_training_job *j, struct hr_job_waits *w);
/* find_reads.c: makes a finding of all other waits for I/O of workers. */
void hr__find_reads(struct hr_training_job *j, struct hr_job_waits *w,
		    const struct hr_job_files *files);

#endif

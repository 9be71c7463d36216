/* SPDX-License-Identifier: Apache-2.0 */
/* Findings about waits for batches. */
#include <errno.h>
#include <math.h>

#include "query/diagnosis/findings_internal.h"

#define SMALL_READ (64.0 * 1024)
/* Handing over a batch of a few tensors takes less. */
#define LONG_HANDOVER 5e-3

/* What the training loops waited for, in seconds. */
struct waits {
	double all, read, metadata, io, cpu, core, computing;
};

static struct waits waits_of(const struct hr_training_job *j)
{
	const double *p = j->part[HR_PHASE_TRAIN];
	struct waits w = {.read = p[HR_PART_WAIT_READ],
			  .metadata = p[HR_PART_WAIT_METADATA],
			  .cpu = p[HR_PART_WAIT_CPU],
			  .core = p[HR_PART_WAIT_CORE]};

	w.io = w.read + w.metadata + p[HR_PART_WAIT_WRITE] + p[HR_PART_WAIT_RUNTIME];
	w.computing = w.cpu + w.core;
	w.all = w.io + w.computing + p[HR_PART_WAIT_FAULT] + p[HR_PART_WAIT_ASLEEP] +
		p[HR_PART_WAIT_UNKNOWN] + p[HR_PART_WAIT_WORKER_START] + p[HR_PART_WAIT_PREFETCH] +
		p[HR_PART_WAIT_HANDOVER] + p[HR_PART_WAIT_END];
	return w;
}

/* The gain of a setting, if the replay knows it: at most all waits. Returns whether it does. */
static bool predict(struct hr_training_job *j, struct hr_finding *f,
		    const struct hr_setting *setting)
{
	struct hr_replayed replay;
	double waits = waits_of(j).all;
	int r = hr__job_replay(j, setting, &replay);

	if (r < 0)
		j->error = r;
	if (r < 0 || replay.refusal != HR_REPLAY_OK)
		return false;
	f->gain_low = fmin(waits, fmax(0, replay.recorded - replay.high));
	f->gain_high = fmin(waits, fmax(0, replay.recorded - replay.low));
	return true;
}

/* The fewest workers, at most `most`, with which the loops take at most 3 % longer than with more. */
static uint32_t best_workers(struct hr_training_job *j, uint32_t most)
{
	double best = INFINITY;
	uint32_t workers = j->workers;

	for (uint32_t w = j->workers > 0 ? j->workers : 1; w <= most && j->error == 0; w++) {
		struct hr_setting setting = HR_SETTING_SAME;
		struct hr_replayed replay;

		setting.workers = w;
		if (hr__job_replay(j, &setting, &replay) < 0) {
			j->error = -ENOMEM;
			break;
		}
		if (replay.refusal != HR_REPLAY_OK)
			break;
		if ((replay.low + replay.high) / 2 < 0.97 * best) {
			best = (replay.low + replay.high) / 2;
			workers = w;
		}
	}
	return workers;
}

static void add_workers(struct hr_training_job *j, struct hr_finding *f, uint32_t most)
{
	uint32_t workers = best_workers(j, most);
	struct hr_setting setting = HR_SETTING_SAME;

	if (workers == j->workers)
		return;
	setting.workers = workers;
	if (predict(j, f, &setting) && f->gain_high > 0)
		f->action = hr__finding_text(j, "set num_workers=%u of the DataLoader (now %u)",
					     workers, j->workers);
}

static uint32_t whole_cores(const struct hr_training_job *j)
{
	return j->cores >= 1 ? (uint32_t)j->cores : 1;
}

static void find_computing(struct hr_training_job *j, const struct waits *w)
{
	bool few_cores = j->workers > 0 && (w->core >= w->cpu || j->workers >= j->cores);
	bool disturbed = w->core > w->cpu && j->cores > 0 && j->used < 0.7 * j->cores;
	enum hr_finding_cause cause = disturbed		? HR_FOUND_DISTURBED
				      : j->workers == 0 ? HR_FOUND_NO_WORKERS
				      : few_cores	? HR_FOUND_FEW_CORES
							: HR_FOUND_FEW_WORKERS;
	struct hr_finding *f = hr__finding_add(j, cause, w->computing);

	if (f == NULL)
		return;
	f->evidence = hr__finding_text(
	    j,
	    "%u worker%s on %g core%s; of the waits for batches, %.0f %% computing "
	    "and %.0f %% without a core",
	    j->workers, j->workers == 1 ? "" : "s", j->cores, j->cores == 1 ? "" : "s",
	    100 * w->cpu / w->all, 100 * w->core / w->all);
	if (disturbed) {
		f->evidence = hr__finding_text(j,
					       "the job keeps at most %.1f of %g cores busy, but "
					       "%.0f %% of the waits are for a core",
					       j->used, j->cores, 100 * w->core / w->all);
		f->action = "find other programs on the node (top), or the CPU quota of the job "
			    "(cpu.max of its cgroup)";
		f->gain_high = w->core;
		f->avoid = "more workers: they get no cores either";
	} else if (few_cores) {
		struct hr_setting setting = HR_SETTING_SAME;

		setting.cores = 2 * j->cores;
		f->action = hr__finding_text(
		    j,
		    "request more cores (now %g), or make the transforms of the data set cheaper",
		    j->cores);
		(void)predict(j, f, &setting);
		f->avoid = "more workers: they share the same cores";
	} else {
		add_workers(j, f, whole_cores(j));
		if (f->action == NULL)
			f->action = "make the transforms of the data set cheaper";
		f->avoid = w->io < 0.1 * w->all
			       ? "faster storage: it is not what the loop waits for"
			       : NULL;
	}
}

/* Most of the waiting is for one file of several, and its reads take much longer than others. */
static bool is_one_file(const struct hr_job_files *files)
{
	const struct hr_item *s = files->slowest;
	double own, others;

	if (s == NULL || files->files < 3 || (double)s->waited_ns < 0.5e9 * files->waited_s)
		return false;
	own = (double)s->read_ns / (double)(s->bytes + 1);
	others = (1e9 * files->read_s - (double)s->read_ns) /
		 ((double)files->bytes - (double)s->bytes + 1);
	return own > 3 * others;
}

static void find_reads(struct hr_training_job *j, const struct waits *w)
{
	struct hr_job_files files;
	struct hr_finding *f;
	double mean;
	enum hr_finding_cause cause;

	hr__job_files(j, &files);
	mean = files.data_reads > 0 ? (double)files.bytes / (double)files.data_reads : 0;
	cause = is_one_file(&files)					  ? HR_FOUND_SLOW_FILE
		: w->metadata > w->read					  ? HR_FOUND_METADATA
		: mean < SMALL_READ && files.data_reads > 8 * files.opens ? HR_FOUND_SMALL_READS
									  : HR_FOUND_SLOW_READS;
	f = hr__finding_add(j, cause, w->io);
	if (f == NULL)
		return;
	f->object = cause == HR_FOUND_SLOW_FILE ? hr__item_path(j, files.slowest)
						: hr__files_folder(j, files.slowest, false);
	f->evidence =
	    hr__finding_text(j,
			     "mount %s: %zu files, %llu opens, %llu reads of %.0f bytes on "
			     "average, %.1f MB/s of a reader",
			     hr__item_mount(j, files.slowest), files.files,
			     (unsigned long long)files.opens, (unsigned long long)files.data_reads,
			     mean, files.read_s > 0 ? (double)files.bytes / 1e6 / files.read_s : 0);
	switch (cause) {
	case HR_FOUND_SLOW_FILE:
		f->action = "copy this file to faster storage: reads of the other files are fast";
		f->gain_high = w->io;
		f->gain_low = 0.5 * w->io;
		f->avoid = "more workers: only the worker that reads this file is slow";
		break;
	case HR_FOUND_SMALL_READS:
		f->action = "read larger blocks, for example open(path, 'rb', buffering=1 << 20)";
		f->gain_low = 0.5 * w->read;
		f->gain_high = w->all; /* a call also takes CPU time */
		break;
	case HR_FOUND_METADATA:
		f->action = "store the samples in fewer, larger files (tar, Parquet, HDF5)";
		f->gain_low = 0.5 * w->metadata;
		f->gain_high = w->all;
		break;
	default:
		add_workers(j, f, 4 * whole_cores(j));
		if (f->action == NULL)
			f->action = "move the data to faster storage";
		f->avoid =
		    w->computing < 0.1 * w->all ? "more cores: the workers do not compute" : NULL;
	}
}

static void find_asleep(struct hr_training_job *j, double lost)
{
	struct hr_finding *f = hr__finding_add(j, HR_FOUND_ASLEEP, lost);

	if (f == NULL)
		return;
	f->evidence = "no CPU time and no operation on a file: a lock, the network or a sleep";
	add_workers(j, f, 4 * whole_cores(j));
	if (f->action == NULL)
		f->action = "find out what the workers wait for: py-spy dump --pid WORKER";
	f->avoid = "more cores: the workers do not compute";
}

/* Counters have no operations: what looks like sleep may be a read. */
static void find_unknown(struct hr_training_job *j, const double *p)
{
	double lost = p[HR_PART_WAIT_UNKNOWN] + (j->counters ? p[HR_PART_WAIT_ASLEEP] : 0);
	struct hr_finding *f = hr__finding_add(j, HR_FOUND_WAIT_UNKNOWN, lost);

	if (f == NULL)
		return;
	if (j->counters) {
		f->evidence = "only counters were recorded, so that reads and sleep look alike";
		f->action = "record every operation: headrace level JOB trace";
	} else {
		f->action = "find out what the workers wait for: py-spy dump --pid WORKER";
	}
}

static void find_workers(struct hr_training_job *j, const double *p)
{
	double lost =
	    p[HR_PART_WAIT_WORKER_START] + p[HR_PART_WAIT_END] + p[HR_PART_CREATE_WORKERS];
	struct hr_finding *f =
	    j->workers > 0 ? hr__finding_add(j, HR_FOUND_WORKER_START, lost) : NULL;
	struct hr_setting setting = HR_SETTING_SAME;

	if (f == NULL)
		return;
	f->evidence = hr__finding_text(j, "%.0f loops, each of which starts %u workers", j->loops,
				       j->workers);
	setting.persistent = true;
	if (j->loops > 1.5 && !j->persistent) {
		f->action = "set persistent_workers=True of the DataLoader";
		(void)predict(j, f, &setting);
		f->gain_low = fmin(f->gain_low, lost);
		f->gain_high = fmin(f->gain_high, lost);
	} else {
		f->action =
		    "make the start of a worker cheaper: fewer imports, a smaller data set object";
	}
}

static void find_handover(struct hr_training_job *j, double lost)
{
	struct hr_finding *f = hr__finding_add(j, HR_FOUND_HANDOVER, lost);
	double each = lost / fmax(1, j->waits);

	if (f == NULL)
		return;
	if (each >= LONG_HANDOVER) {
		f->evidence = hr__finding_text(j, "%.1f ms a batch", 1e3 * each);
		f->action =
		    "return few large tensors from the data set instead of many small objects";
	} else {
		f->evidence = hr__finding_text(
		    j, "%.1f ms a batch, which is usual: larger batches need fewer hand-overs",
		    1e3 * each);
	}
	f->avoid = "faster storage: the batches are already made";
}

void hr__find_waits(struct hr_training_job *j)
{
	const double *p = j->part[HR_PHASE_TRAIN];
	struct waits w = waits_of(j);
	struct hr_setting setting = HR_SETTING_SAME;
	struct hr_finding *f;

	find_computing(j, &w);
	find_reads(j, &w);
	if (!j->counters)
		find_asleep(j, p[HR_PART_WAIT_ASLEEP]);
	find_unknown(j, p);
	find_workers(j, p);
	f = hr__finding_add(j, HR_FOUND_MAPPED, p[HR_PART_WAIT_FAULT]);
	if (f != NULL)
		f->action =
		    "read the files instead of mapping them, or call madvise(MADV_WILLNEED)";
	f = hr__finding_add(j, HR_FOUND_PREFETCH, p[HR_PART_WAIT_PREFETCH]);
	if (f != NULL) {
		setting.prefetch = 4 * (j->prefetch > 0 ? j->prefetch : 2);
		f->action = hr__finding_text(j, "set prefetch_factor=%u of the DataLoader (now %u)",
					     setting.prefetch, j->prefetch);
		(void)predict(j, f, &setting);
	}
	find_handover(j, p[HR_PART_WAIT_HANDOVER]);
}

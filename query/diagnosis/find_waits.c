/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Findings about waits for batches, except those of find_places.c, find_reads.c and find_uneven.c.
 */
#include <math.h>

#include "query/diagnosis/findings_internal.h"

#define CHEAPER "make the transforms of the data set cheaper"

/*
 * In seconds. Chosen, not measured: a batch of a few tensors is handed over in less time. If each
 * hand-over becomes that short, the worker and the training thread also save time.
 */
#define LONG_HANDOVER 5e-3
#define HANDOVER_HIGH 1.2
/* The share of a hand-over for which the training thread computes, to be what takes the time. */
#define HANDOVER_CPU 0.5
/* If workers have no core for this share of this time, a hand-over lacks one, too. Chosen. */
#define CONTENDED 0.3
/* Replays try this multiple of the prefetch_factor. */
#define PREFETCH_MORE 4
/*
 * If other programs leave the cores: the least share of the waits for a core that is saved, and the
 * most of the computing of the training thread. Wide, because headrace sees no other programs.
 */
#define DISTURBED_LOW	  0.3
#define DISTURBED_COMPUTE 0.8
/* Evidence mentions other programs if they cost at least this share of the waits. */
#define OTHERS_SHARE 0.1
/*
 * Of the time in which workers neither compute nor use files: the share that makes a lock, the
 * network or a sleep the cause. A lock has the lowest one, because its holder may sleep or send
 * requests in the meantime.
 */
#define LOCK_SHARE    0.25
#define NETWORK_SHARE 0.4
#define SLEEP_SHARE   0.4
#define IDLE_SHOWN    0.01 /* shares that evidence would show as 0 or 1 % are left out */
/* With a mean of fewer loops, most processes have one. */
#define SEVERAL_LOOPS 1.5
/* A gain that begins at less than this share of the wall time begins at 0. */
#define NO_GAIN 0.01

/* Whether other programs seem to keep the cores busy: workers lack cores, but the job uses few. */
static bool is_disturbed(const struct hr_training_job *j, const struct hr_job_waits *w)
{
	return w->core > w->cpu && hr__leaves_cores(j);
}

/* Returns the time before and after the loops, in which the training thread runs alone. */
static double alone(const struct hr_training_job *j)
{
	double s = 0;

	for (unsigned phase = 0; phase < HR_PHASES; phase++)
		s += j->part[phase][HR_PART_IMPORTS] + j->part[phase][HR_PART_OTHER];
	return s;
}

/*
 * Predicts the gain as a range, because headrace does not know how many cores the job can get: from
 * twice as many cores to one core for each thread.
 */
static void predict_cores(struct hr_training_job *j, struct hr_finding *f)
{
	struct hr_setting setting = HR_SETTING_SAME;
	double low;

	setting.cores = HR_MORE * j->cores;
	if (!hr__predict(j, f, &setting) || j->workers + 1 <= setting.cores)
		return;
	low = f->gain_low;
	setting.cores = j->workers + 1;
	if (hr__predict(j, f, &setting))
		f->gain_low = fmin(f->gain_low, low);
	/* With less than one core, the phases in which the training thread runs alone also gain. */
	f->gain_high += alone(j) * (1 - fmin(1, j->cores));
}

static void advise_cores(struct hr_training_job *j, struct hr_finding *f)
{
	if (j->quota > 0)
		f->action = hr__raise_quota(j);
	else
		f->action = hr__finding_text(j, "request %u cores%s (now %g)%s",
					     j->workers + 1 > HR_MORE * hr__whole_cores(j)
						 ? j->workers + 1
						 : HR_MORE * hr__whole_cores(j),
					     j->lives > 1 ? " for each rank" : "", j->cores,
					     hr__line_seconds(j, f) > 0 ? "" : ", or " CHEAPER);
	predict_cores(j, f);
	hr__avoid(j, f, 1 << HR_USUAL_WORKERS, "more workers: they share the same cores");
}

/* Workers have no core because the training process computes with many threads. */
static void advise_threads(struct hr_training_job *j, struct hr_finding *f, double others)
{
	f->action = hr__finding_text(j,
				     "let the training process compute with fewer threads "
				     "(torch.set_num_threads; threads besides the training thread "
				     "use %.1f cores between waits), and add workers",
				     others);
	f->gain_low = 0;
	f->gain_high = f->lost;
}

static const char *maker(const struct hr_training_job *j)
{
	return j->workers > 0 ? "the worker that made the batch" : "the training thread";
}

/* Returns a note if other programs use the cores for which workers wait; otherwise "". */
static const char *other_users(const struct hr_training_job *j, const struct hr_job_waits *w,
			       double other_threads)
{
	if (j->quota > 0 || j->cores <= j->workers || w->core < OTHERS_SHARE * w->all ||
	    other_threads >= HR_PARALLEL_CORES)
		return "";
	return "; other programs used these cores, too";
}

/* Workers have no core because other programs, or a limit, use it. */
static void advise_disturbed(struct hr_training_job *j, struct hr_finding *f,
			     const struct hr_job_waits *w)
{
	f->evidence = hr__finding_text(j,
				       "the job keeps at most %.1f of %g cores busy, but workers "
				       "had no core during %.0f %% of the waits",
				       j->used, j->cores, 100 * w->core / w->all);
	f->gain_low = DISTURBED_LOW * w->core;
	/* Hand-overs and the training thread also get faster if other programs leave the cores. */
	f->gain_high = w->all + DISTURBED_COMPUTE * j->part[HR_PHASE_TRAIN][HR_PART_COMPUTE] +
		       alone(j) * w->core / (w->cpu + w->core);
}

/* Cores are free, so more workers help, or fewer threads of the training process (`others`). */
static void advise_workers(struct hr_training_job *j, struct hr_finding *f, double others)
{
	hr__add_workers(j, f, hr__whole_cores(j));
	if (others >= HR_PARALLEL_CORES && f->gain_low < hr__worth(j))
		advise_threads(j, f, others);
	if (f->action == NULL && hr__line_seconds(j, f) <= 0)
		f->action = CHEAPER;
	hr__avoid(j, f, 1 << HR_USUAL_STORAGE, "faster storage: it is not what the loop waits for");
}

static const char *making_text(struct hr_training_job *j, const struct hr_job_waits *w)
{
	return hr__finding_text(j,
				"during the waits, %s computed for %.0f %% of the time, and waited "
				"for a core for %.0f %%",
				maker(j), 100 * w->cpu / w->all, 100 * w->core / w->all);
}

/* The settings of a loader that is not a DataLoader are unknown, so nothing can be predicted. */
static void find_computing_other(struct hr_training_job *j, const struct hr_job_waits *w)
{
	bool few_cores = w->core >= w->cpu;
	enum hr_finding_cause cause = few_cores ? HR_FOUND_FEW_CORES
				      : j->own	? HR_FOUND_NO_WORKERS
						: HR_FOUND_FEW_WORKERS;
	struct hr_finding *f = hr__finding_add(j, cause, w->cpu + w->core);

	if (f == NULL)
		return;
	f->evidence = making_text(j, w);
	f->action = hr__finding_text(
	    j, "%s%s",
	    cause == HR_FOUND_NO_WORKERS
		? "make the batches in other processes (for example the workers of a DataLoader)"
	    : few_cores ? "request more cores"
			: "give the loader more workers",
	    hr__line_seconds(j, f) > 0 ? "" : ", or " CHEAPER);
	hr__advise_line(j, f, false);
}

static void find_computing(struct hr_training_job *j, const struct hr_job_waits *w)
{
	bool few_cores = j->workers > 0 && (w->core >= w->cpu || j->workers >= j->cores);
	bool disturbed = j->quota <= 0 && is_disturbed(j, w);
	double others = hr_life_main_use(&j->d->lives.list[j->first]).others;
	enum hr_finding_cause cause = disturbed		? HR_FOUND_DISTURBED
				      : few_cores	? HR_FOUND_FEW_CORES
				      : j->workers == 0 ? HR_FOUND_NO_WORKERS
							: HR_FOUND_FEW_WORKERS;
	struct hr_finding *f = hr__finding_add(j, cause, w->cpu + w->core);

	if (f == NULL)
		return;
	f->evidence = hr__finding_text(
	    j, "%u worker%s on %g core%s%s; %s%s", j->workers, j->workers == 1 ? "" : "s", j->cores,
	    j->cores == 1 ? "" : "s", j->quota > 0 ? " (a CPU quota)" : "", making_text(j, w),
	    other_users(j, w, others));
	if (disturbed)
		advise_disturbed(j, f, w);
	else if (few_cores)
		advise_cores(j, f);
	else
		advise_workers(j, f, others);
	if (!disturbed)
		hr__advise_line(j, f, !few_cores);
}

/* Example: "the training thread slept for 52 % of the lost time, waited for a lock for 48 %". */
static const char *idle_text(struct hr_training_job *j, const struct hr_job_waits *w, double lost)
{
	const struct {
		const char *did;
		double s;
	} all[] = {{"slept (time.sleep and related calls)", w->sleep},
		   {"waited for the network", w->network},
		   {"waited for a lock", w->lock}};
	const char *text = NULL;

	for (size_t i = 0; i < 3; i++) {
		if (all[i].s < IDLE_SHOWN * lost)
			continue;
		if (text != NULL)
			text = hr__finding_text(j, "%s, %s for %.0f %%", text, all[i].did,
						100 * all[i].s / lost);
		else
			text = hr__finding_text(j, "%s %s for %.0f %% of the lost time", maker(j),
						all[i].did, 100 * all[i].s / lost);
	}
	return text;
}

static void advise_idle(struct hr_training_job *j, struct hr_finding *f)
{
	const char *more;

	hr__add_workers(j, f, HR_WORKERS_PER_CORE * hr__whole_cores(j));
	more = f->action;
	if (f->cause == HR_FOUND_SLEEP) {
		f->action = hr__finding_text(
		    j, "remove the sleep (time.sleep, a retry, a rate limit)%s%s%s",
		    more != NULL ? ", or if it must stay, " : "", more != NULL ? more : "",
		    hr__find_line(j, f));
		f->gain_high = fmax(f->gain_high, HR_REST * f->lost);
	} else if (f->action == NULL && f->cause == HR_FOUND_NETWORK) {
		f->action = "send requests ahead and at the same time, or copy the data to storage "
			    "of the node";
	} else if (f->action == NULL) {
		f->action =
		    hr__finding_text(j, "find out what it waits for%s", hr__find_line(j, f));
	}
	hr__avoid(j, f, 1 << HR_USUAL_CORES, "more cores: the workers do not compute");
}

static void advise_lock(struct hr_training_job *j, struct hr_finding *f,
			const struct hr_job_waits *w)
{
	if (j->own) {
		f->action = hr__finding_text(j,
					     "find out which thread or process holds the lock, or "
					     "fills the queue%s",
					     hr__find_line(j, f));
		return;
	}
	if (w->sleep > LOCK_SHARE * f->lost)
		f->evidence = hr__finding_text(
		    j, "%s: probably, the worker that holds the lock sleeps", f->evidence);
	f->action = hr__finding_text(
	    j,
	    "hold the lock for a shorter time (do not sleep, read or send requests while it is "
	    "held), or give each worker an object of its own, which needs no lock%s",
	    hr__find_line(j, f));
	f->gain_high = HR_REST * f->lost;
	hr__avoid(j, f, 1 << HR_USUAL_WORKERS, "more workers: they wait for the same lock");
}

/* Finds workers that do not compute and do not use files. */
static void find_idle(struct hr_training_job *j, const struct hr_job_waits *w)
{
	double lost = w->sleep + w->network + w->lock + w->asleep;
	enum hr_finding_cause cause = w->lock > LOCK_SHARE * lost	  ? HR_FOUND_LOCK
				      : w->network > NETWORK_SHARE * lost ? HR_FOUND_NETWORK
				      : w->sleep > SLEEP_SHARE * lost	  ? HR_FOUND_SLEEP
									  : HR_FOUND_ASLEEP;
	struct hr_finding *f = hr__finding_add(j, cause, lost);

	if (f == NULL)
		return;
	f->evidence = idle_text(j, w, lost);
	if (cause == HR_FOUND_LOCK) {
		advise_lock(j, f, w);
		return;
	}
	if (cause == HR_FOUND_ASLEEP)
		f->evidence =
		    "no CPU time, and no operation on a file: a lock, a process or a device";
	advise_idle(j, f);
}

/* If only counters were recorded, time that looks like sleep may be a read. */
static void find_unknown(struct hr_training_job *j)
{
	double lost = hr__loop_part(j, HR_PART_WAIT_UNKNOWN) - j->hung +
		      (j->counters ? hr__loop_part(j, HR_PART_WAIT_ASLEEP) : 0);
	struct hr_finding *f = hr__finding_add(j, HR_FOUND_WAIT_UNKNOWN, lost);

	if (f == NULL)
		return;
	if (j->counters) {
		f->evidence = "only counters were recorded, so that reads and sleep look alike";
		f->action = "record every operation: headrace level JOB trace";
	} else {
		f->action =
		    j->workers == 0 && j->other_kind && !j->own
			? "time the loader alone: iterate over it without training; if it is as "
			  "slow, give it more threads or workers, or let it prefetch more"
			: hr__finding_text(j, "find out what the %s for%s",
					   j->workers > 0 ? "workers wait"
							  : "training thread waits",
					   hr__find_line(j, f));
	}
}

static const char *loops_which(struct hr_training_job *j)
{
	return j->loops < SEVERAL_LOOPS
		   ? "one loop, which"
		   : hr__finding_text(j, "%.0f loops, each of which", j->loops);
}

static void find_workers(struct hr_training_job *j)
{
	double start = hr__loop_part(j, HR_PART_WAIT_WORKER_START);
	double lost =
	    start + hr__loop_part(j, HR_PART_WAIT_END) + hr__loop_part(j, HR_PART_CREATE_WORKERS);
	bool starts = j->workers > 0 || start > 0;
	struct hr_finding *f = starts ? hr__finding_add(j, HR_FOUND_WORKER_START, lost) : NULL;
	struct hr_setting setting = HR_SETTING_SAME;

	if (f == NULL)
		return;
	if (j->other_kind) {
		f->evidence = hr__finding_text(j, "%s starts workers", loops_which(j));
		f->action =
		    "keep the workers for all epochs (one loop over repeated data), or make "
		    "their start cheaper: fewer imports, a smaller data set object";
		f->gain_high = lost;
		return;
	}
	f->evidence = hr__finding_text(j, "%s starts %u worker%s", loops_which(j), j->workers,
				       j->workers == 1 ? "" : "s");
	setting.persistent = true;
	if (j->loops > SEVERAL_LOOPS && !j->persistent) {
		f->action =
		    hr__finding_text(j, "set persistent_workers=True of the DataLoader%s",
				     j->made != NULL ? hr__finding_text(j, " (%s)", j->made) : "");
		(void)hr__predict(j, f, &setting);
		f->gain_low = fmin(f->gain_low, lost);
		f->gain_high = fmin(f->gain_high, lost);
	} else {
		f->action =
		    "make the start of a worker cheaper: fewer imports, a smaller data set object";
	}
	hr__try_no_workers(j, f);
}

/* Returns the mean CPU time of the training thread in a wait of training loops, in seconds. */
static double cpu_in_wait(const struct hr_training_job *j)
{
	double ns = 0, waits = 0;

	for (size_t i = j->first; i < j->end; i++) {
		const struct hr_train_life *life = &j->d->lives.list[i];

		for (size_t k = 0; k < life->n_loops && hr__job_has(j, i); k++) {
			ns += life->loops[k].trains ? (double)life->loops[k].wait_cpu_ns : 0;
			waits += life->loops[k].trains ? (double)life->loops[k].cpu_waits : 0;
		}
	}
	return ns / 1e9 / fmax(1, waits);
}

/* Returns the share of the time that workers were ready to compute in which they had no core. */
static double without_core(const struct hr_training_job *j)
{
	double cpu = 0, core = 0;

	for (size_t i = j->first_fetch; i < j->end_fetch; i++) {
		if (!hr__job_made(j, &j->d->lives.fetches[i]))
			continue;
		cpu += j->d->spent[i].cpu;
		core += j->d->spent[i].core;
	}
	return core / fmax(1, cpu + core);
}

static void find_handover(struct hr_training_job *j, double lost)
{
	struct hr_finding *f = hr__finding_add(j, HR_FOUND_HANDOVER, lost);
	double each = lost / fmax(1, j->waits), own = cpu_in_wait(j);
	double others = hr_life_main_use(&j->d->lives.list[j->first]).others;

	if (f == NULL)
		return;
	f->gain_high = each >= LONG_HANDOVER ? HANDOVER_HIGH * lost : 0;
	if (each < LONG_HANDOVER) {
		f->evidence = hr__finding_text(
		    j, "%s a batch, which is usual: larger batches need fewer hand-overs",
		    hr__seconds(each).s);
	} else if (own >= HANDOVER_CPU * each) {
		f->evidence = hr__finding_text(
		    j, "%s a batch; the training thread itself computes for %s of it",
		    hr__seconds(each).s, hr__seconds(fmin(own, each)).s);
		f->action =
		    "find out what it computes in next(): it runs the sampler, and makes objects "
		    "of what the worker sent (return few large tensors instead of many small "
		    "objects); " HR_FIND_STACK;
	} else if (others >= HR_PARALLEL_CORES) {
		f->evidence = hr__finding_text(
		    j,
		    "%s a batch; other threads of the training process compute (%.1f cores "
		    "between waits), and may keep Python's lock from it",
		    hr__seconds(each).s, others);
		f->action = "find out which threads compute, and move their work to another "
			    "process; " HR_FIND_STACK;
	} else if (without_core(j) >= CONTENDED) {
		f->evidence = hr__finding_text(
		    j,
		    "%s a batch; workers had no core for %.0f %% of the time in which they could "
		    "compute, and a hand-over needs one, too",
		    hr__seconds(each).s, 100 * without_core(j));
		f->action = "request more cores, or find other programs on the node (top)";
	} else {
		f->evidence = hr__finding_text(j, "%s a batch", hr__seconds(each).s);
		f->action =
		    "return few large tensors from the data set instead of many small objects";
		f->gain_low = lost * (1 - LONG_HANDOVER / each);
	}
	hr__try_no_workers(j, f);
	hr__avoid(j, f, 1 << HR_USUAL_STORAGE, "faster storage: the batches are already made");
}

static const char *fault_text(struct hr_training_job *j)
{
	double faults = 0, ns = 0;

	for (size_t i = j->first_fetch; i < j->end_fetch; i++) {
		if (!hr__job_made(j, &j->d->lives.fetches[i]))
			continue;
		faults += (double)j->d->lives.fetches[i].used.major_faults;
		ns += j->d->spent[i].fault;
	}
	return hr__finding_text(j,
				"the kernel had to read pages of mapped files from storage while a "
				"worker waited: %s page faults, %s each",
				hr__number(faults).s, hr__seconds(ns / 1e9 / fmax(1, faults)).s);
}

static void find_mapped(struct hr_training_job *j, const struct hr_job_files *files, double lost,
			double waits)
{
	static const char read_instead[] =
	    "read larger parts of the files at once instead of mapping "
	    "them (or call madvise(MADV_WILLNEED) before use)";
	struct hr_finding *f = hr__finding_add(j, HR_FOUND_MAPPED, lost);

	if (f == NULL)
		return;
	hr__finding_place(j, f, files->mapped, HR_ITEM_MAPPED);
	f->evidence = fault_text(j);
	hr__add_workers(j, f, HR_WORKERS_PER_CORE * hr__whole_cores(j));
	if (f->action == NULL) {
		f->action = read_instead;
		f->gain_high = waits; /* more than `lost`: page faults also take CPU time */
	} else {
		f->action = hr__finding_text(j, "%s, or %s", f->action, read_instead);
	}
	if (f->gain_low < NO_GAIN * f->wall)
		f->gain_note = "how the storage reacts to more page faults at a time is not known";
	hr__avoid(j, f, 1 << HR_USUAL_CORES, "more cores: the workers wait for pages");
}

static void find_prefetch(struct hr_training_job *j, double lost)
{
	uint32_t prefetch = j->prefetch > 0 ? j->prefetch : 2;
	struct hr_setting setting = HR_SETTING_SAME;
	struct hr_finding *f = hr__finding_add(j, HR_FOUND_PREFETCH, lost);

	if (f == NULL)
		return;
	setting.prefetch = PREFETCH_MORE * prefetch;
	f->evidence = "the worker had nothing to do, because its next batch was not yet requested";
	if (j->other_kind) {
		f->action = "let the loader prefetch more batches";
		return;
	}
	f->action = hr__set_loader(j, "prefetch_factor", setting.prefetch, prefetch);
	(void)hr__predict(j, f, &setting);
}

void hr__find_waits(struct hr_training_job *j, const struct hr_job_files *files)
{
	struct hr_job_waits w = hr__job_waits(j);
	size_t before = j->to->n;

	hr__find_places(j, &w, files);
	hr__find_uneven(j, &w);
	/* hr__find_uneven may have advised a larger prefetch_factor already. */
	if (j->to->n == before || j->to->list[j->to->n - 1].cause != HR_FOUND_PREFETCH)
		find_prefetch(j, hr__loop_part(j, HR_PART_WAIT_PREFETCH));
	hr__find_reads(j, &w, files);
	if (j->other_kind)
		find_computing_other(j, &w);
	else
		find_computing(j, &w);
	find_idle(j, &w);
	find_mapped(j, files, w.fault, w.all);
	find_unknown(j);
	find_workers(j);
	find_handover(j, hr__loop_part(j, HR_PART_WAIT_HANDOVER));
}

/* SPDX-License-Identifier: Apache-2.0 */
#include <math.h>

#include "query/diagnosis/findings_internal.h"

#define SMALL_READ (32.0 * 1024)
/* Such reads are the cause also if the storage is saturated: each takes its time for few bytes. */
#define TINY_READ  (4.0 * 1024)
#define SMALL_FILE (128.0 * 1024)
#define MANY_FILES 64u
/* With fewer reads for each open, the files are read as a whole, and larger reads save little. */
#define READS_PER_OPEN 8u
/* If opens etc. take a smaller share of the time of reads, the size of files matters little. */
#define OPENS_SHARE 0.5
/* Reading the same data, or opening a file, more often than this in each pass is a cause. */
#define AGAIN 3.0
/*
 * Storage with at least this exponent (samples.h) is saturated: if more operations are under way,
 * each takes almost proportionally longer. It is if so many are under way on average.
 */
#define SATURATED	0.5
#define SATURATED_BEGIN 1.3
/* A finding mentions more workers if they save at least this share of its loss. */
#define LEAST_WORKERS 0.2
/* If I/O takes less than this share of the CPU time around it, it does not explain this time. */
#define EXPLAINS   0.1
#define LINE_SHOWN 0.5 /* of the wait; smaller shares are left out */
/* With this share of the bytes, a file is named instead of its folder. */
#define ONE_FILE 0.9
/* Code that reads so many bytes in a second of CPU time may decode or parse them. Chosen. */
#define PARSES 0.5e6
/*
 * Workers of which each reads all data: the bytes of a pass differ from this number of copies by at
 * most this share. Chosen, not measured.
 */
#define COPIES_SHARE 0.1
/* The assumed CPU time of the code around an operation. */
#define CALL_S 1.5e-6
/*
 * The range of a gain. Chosen; with it, 74 of 74 planted jobs saved a time in the range
 * (docs/limitations.md). It begins at GAIN_LOW of what a replay predicts, once more for saturated
 * storage, whose reaction is known least. It ends at the loss and at most HIGH_LOSS of it, or
 * HIGH_LOOP of the loops, because fewer operations also save CPU time in the code around them.
 * Without a replay, it begins at BLIND_LOW of what the operations would save.
 */
#define GAIN_LOW  0.7
#define HIGH_LOSS 1.2
#define HIGH_LOOP 0.2
#define BLIND_LOW 0.5
/* What remains, assumed: of opens that the kernel caches, and of cached ones of larger files. */
#define REOPEN_CACHED 0.3
#define LARGER_CACHED 0.2

/*
 * Predicts the gain if each operation took `cached` times as long as recorded (operations that the
 * kernel's caches served) or `io` times as long (other operations).
 */
static void predict_io(struct hr_training_job *j, struct hr_finding *f, double io, double cached)
{
	struct hr_setting setting = HR_SETTING_SAME;

	setting.io = (struct hr_multiple){io, io};
	setting.cached = (struct hr_multiple){cached, cached};
	if (!hr__predict(j, f, &setting)) {
		f->gain_low = BLIND_LOW * f->lost * (1 - io);
		f->gain_high = f->lost;
	} else {
		f->gain_low *= j->io_left; /* the replay changes all I/O */
		f->gain_high *= j->io_left;
	}
	f->gain_low *= GAIN_LOW;
	f->gain_high = fmax(f->gain_high, fmin(HIGH_LOSS * f->lost, f->lost + HIGH_LOOP * j->loop));
	f->gain_high = fmin(f->gain_high, hr__most_gain(j));
}

static double mean_read(const struct hr_job_files *f)
{
	return f->data_reads > 0 ? (double)f->bytes / (double)f->data_reads : 0;
}

static struct hr_human each_took(double seconds, double operations)
{
	return hr__seconds(hr__per_operation(seconds, operations));
}

static struct hr_human size(double bytes)
{
	return hr_text_size((uint64_t)bytes);
}

static const struct hr_load *load_of(const struct hr_training_job *j,
				     const struct hr_job_files *files)
{
	return files->slowest != NULL ? hr__load_of(&j->d->loads, files->slowest->stream) : NULL;
}

/* Returns how often a pass over a loader reads the same data. */
static double times_read(const struct hr_training_job *j, const struct hr_job_files *files)
{
	return (double)files->sized_bytes / fmax(1, (double)files->extent) / fmax(1, j->all_loops);
}

/* Returns the bytes that workers read in a second of their CPU time. */
static double parsed_per_s(const struct hr_training_job *j, const struct hr_job_files *files)
{
	double cpu = 0;

	for (size_t i = j->first_fetch; i < j->end_fetch; i++)
		if (hr__job_made(j, &j->d->lives.fetches[i]))
			cpu += j->d->spent[i].cpu / 1e9;
	return (double)files->bytes / fmax(1e-9, cpu);
}

static enum hr_finding_cause cause_of(const struct hr_training_job *j, const struct hr_job_waits *w,
				      const struct hr_job_files *f)
{
	const struct hr_load *load = load_of(j, f);
	double passes = fmax(1, j->all_loops),
	       opened = (double)f->opens / fmax(1, (double)f->read_files);
	double size = (double)f->extent / fmax(1, (double)f->sized_files);
	bool again = times_read(j, f) > AGAIN;

	/* Data in the page cache: its I/O is short, but it is parsed or decoded again. */
	if (again && hr_job_waits_io(w) < EXPLAINS * (w->cpu + w->core) &&
	    parsed_per_s(j, f) >= PARSES)
		return HR_FOUND_REREADS;
	if ((double)f->examined > HR_EXAMINED * (double)f->opens && w->metadata > w->read)
		return HR_FOUND_METADATA;
	if (opened > AGAIN * passes && w->metadata > w->read)
		return HR_FOUND_REOPENS;
	if (again && w->read > w->metadata)
		return HR_FOUND_REREADS;
	if (mean_read(f) < TINY_READ && f->data_reads > READS_PER_OPEN * f->opens &&
	    w->read > w->metadata)
		return HR_FOUND_SMALL_READS;
	if (load != NULL && load->known && load->exponent >= SATURATED &&
	    load->under_way > SATURATED_BEGIN)
		return HR_FOUND_SATURATED;
	if (size < SMALL_FILE && f->sized_files >= MANY_FILES &&
	    w->metadata > OPENS_SHARE * w->read)
		return HR_FOUND_SMALL_FILES;
	if (w->metadata > w->read)
		return HR_FOUND_METADATA;
	if (mean_read(f) < SMALL_READ && f->data_reads > READS_PER_OPEN * f->opens)
		return HR_FOUND_SMALL_READS;
	return HR_FOUND_SLOW_READS;
}

/* ---- evidence, action and gain of each cause ---- */

/* Mentions more workers: they read several small files at a time. */
static void also_workers(struct hr_training_job *j, struct hr_finding *f)
{
	double saved = hr__workers_save(j);

	if (isfinite(saved) && saved > LEAST_WORKERS * f->lost)
		f->action = hr__finding_text(
		    j, "%s; or first %s: about %s less", f->action,
		    hr__set_loader(j, "num_workers", HR_MORE * j->workers, j->workers),
		    hr__seconds(saved).s);
}

static void advise_fewer_files(struct hr_training_job *j, struct hr_finding *f)
{
	predict_io(j, f, HR_FASTER, LARGER_CACHED);
	if (j->workers > 0)
		also_workers(j, f);
}

static void describe_metadata(struct hr_training_job *j, struct hr_finding *f,
			      const struct hr_job_files *files)
{
	f->evidence = hr__finding_text(
	    j,
	    "%s opens and %s other operations on names (stat, exists, listdir) of %s files, which "
	    "take %s each",
	    hr__number((double)files->opens).s, hr__number((double)files->examined).s,
	    hr__number((double)files->files).s,
	    each_took(files->metadata_s, (double)files->opens + (double)files->examined).s);
	if (files->examined > HR_EXAMINED * files->opens) {
		f->action = "examine files once instead of for each sample (os.stat, "
			    "os.path.exists, os.listdir)";
		predict_io(j, f, HR_FASTER, HR_FASTER);
	} else {
		advise_fewer_files(j, f);
	}
}

static void describe_reopens(struct hr_training_job *j, struct hr_finding *f,
			     const struct hr_job_files *files)
{
	double passes = fmax(1, j->all_loops), read_files = fmax(1, (double)files->read_files);

	f->evidence = hr__finding_text(
	    j,
	    "%s opens of %s files, which take %s each: every file is opened %.0f times in a pass "
	    "of a rank over its data",
	    hr__number((double)files->opens).s, hr__number(read_files).s,
	    each_took(files->metadata_s, (double)files->opens).s,
	    (double)files->opens / read_files / passes);
	predict_io(j, f, passes * read_files / (double)files->opens, REOPEN_CACHED);
}

static void describe_rereads(struct hr_training_job *j, struct hr_finding *f,
			     const struct hr_job_files *files)
{
	double times = times_read(j, files);

	f->evidence = hr__finding_text(
	    j, "%s %s from %s of files: %.0f times each in a pass over the data%s",
	    hr__has_workers(j) ? "workers read" : "the training thread reads",
	    size((double)files->sized_bytes).s, size((double)files->extent).s, times,
	    j->line == NULL || j->line_share < LINE_SHOWN
		? ""
		: hr__finding_text(j, "; batches are made at %s for %.0f %% of the wait", j->line,
				   100 * j->line_share));
	if (files->most_read != NULL &&
	    (double)files->most_read->bytes > ONE_FILE * (double)files->bytes)
		f->object = hr__item_path(j, files->most_read);
	hr__avoid(j, f, 1 << HR_USUAL_WORKERS, "more workers: they read the same data once more");
	predict_io(j, f, 1 / times, 1 / times);
}

static void describe_small_files(struct hr_training_job *j, struct hr_finding *f,
				 const struct hr_job_files *files)
{
	f->evidence =
	    hr__finding_text(j, "%s files of %s on average: to open one takes %s, to read it %s",
			     hr__number(fmax(1, (double)files->read_files)).s,
			     size((double)files->extent / (double)files->sized_files).s,
			     each_took(files->metadata_s, (double)files->opens).s,
			     each_took(files->read_s, (double)files->opens).s);
	advise_fewer_files(j, f);
}

static void describe_small_reads(struct hr_training_job *j, struct hr_finding *f,
				 const struct hr_job_files *files)
{
	f->evidence = hr__finding_text(
	    j, "%s reads of %s on average, which take %s each, without the CPU time around them",
	    hr__number((double)files->data_reads).s, size(mean_read(files)).s,
	    each_took(files->read_s, (double)files->data_reads).s);
	predict_io(j, f, HR_FASTER, HR_FASTER);
}

static void describe_saturated(struct hr_training_job *j, struct hr_finding *f,
			       const struct hr_job_files *files)
{
	const struct hr_load *load = load_of(j, files);
	double workers = hr__workers_save(j);
	const char *more = "";

	if (load == NULL) /* only for static analyzers, see cause_of() */
		return;
	if (isfinite(workers) && workers > hr__worth(j))
		more = hr__finding_text(j, "; twice as many workers would save about %s",
					hr__seconds(workers).s);
	f->evidence = hr__finding_text(
	    j,
	    "on average, %.1f operations are under way at the same time; with twice as many, each "
	    "takes %.1f times as long (measured in this job); all workers together read %s/s%s",
	    load->under_way, pow(2, load->exponent),
	    size((double)files->bytes / fmax(1e-9, (double)j->lives * j->loop)).s, more);
	hr__avoid(j, f, 1 << HR_USUAL_WORKERS,
		  "more workers: the storage serves them one after the other");
	predict_io(j, f, HR_FASTER, 1);
	f->gain_low *= GAIN_LOW;
}

static void describe_slow_reads(struct hr_training_job *j, struct hr_finding *f,
				const struct hr_job_files *files)
{
	const struct hr_load *load = load_of(j, files);

	f->evidence = hr__finding_text(
	    j, "%s reads of %s on average, which take %s each: %s/s of each worker%s",
	    hr__number((double)files->data_reads).s, size(mean_read(files)).s,
	    each_took(files->read_s, (double)files->data_reads).s,
	    size((double)files->bytes / fmax(1e-9, files->read_s)).s,
	    load != NULL && load->known
		? ""
		: "; whether the storage serves more reads at a time is not known");
	hr__add_workers(j, f, HR_WORKERS_PER_CORE * hr__whole_cores(j));
	if (f->action == NULL) {
		f->action = "move the data to faster storage";
		predict_io(j, f, HR_FASTER, 1);
	}
	hr__avoid(j, f, 1 << HR_USUAL_CORES, "more cores: the workers do not compute");
}

typedef void describe_reads(struct hr_training_job *j, struct hr_finding *f,
			    const struct hr_job_files *files);
static describe_reads *const describe[HR_FOUND_END] = {
    [HR_FOUND_METADATA] = describe_metadata,	   [HR_FOUND_REOPENS] = describe_reopens,
    [HR_FOUND_REREADS] = describe_rereads,	   [HR_FOUND_SMALL_FILES] = describe_small_files,
    [HR_FOUND_SMALL_READS] = describe_small_reads, [HR_FOUND_SATURATED] = describe_saturated,
    [HR_FOUND_SLOW_READS] = describe_slow_reads,
};

/* Returns the CPU time of the code around operations, which fewer operations would save. */
static double around(const struct hr_job_waits *w, const struct hr_job_files *f,
		     enum hr_finding_cause cause)
{
	double all = f->read_s + f->metadata_s, waited = all > 0 ? fmin(1, f->waited_s / all) : 0;
	double cpu = w->cpu + w->core;

	if (cause == HR_FOUND_REREADS) /* data that is read again is probably decoded again */
		return cpu;
	if (cause == HR_FOUND_SMALL_READS || cause == HR_FOUND_METADATA ||
	    cause == HR_FOUND_REOPENS)
		return fmin(cpu, waited * CALL_S * (double)f->operations);
	return 0;
}

void hr__find_copies(struct hr_training_job *j, const struct hr_job_files *files)
{
	double copies = times_read(j, files);
	struct hr_finding *f;

	if (!j->iterable || j->workers < 2 || files->sized_files == 0 ||
	    fabs(copies - j->workers) > COPIES_SHARE * j->workers)
		return;
	f = hr__finding_add(j, HR_FOUND_COPIES, (1 - 1.0 / j->workers) * j->loop);
	if (f == NULL)
		return;
	f->object = hr__item_path(j, files->most_read);
	f->mount = hr__item_mount(j, files->most_read);
	f->evidence = hr__finding_text(
	    j,
	    "in each pass over an IterableDataset, %u workers read %.1f times the bytes of the "
	    "files; if each worker returns all of its samples, the training gets each sample %u "
	    "times",
	    j->workers, copies, j->workers);
}

void hr__find_reads(struct hr_training_job *j, struct hr_job_waits *w,
		    const struct hr_job_files *files)
{
	enum hr_finding_cause cause = cause_of(j, w, files);
	struct hr_finding *f;
	double more;

	more =
	    around(w, files, cause) / (cause == HR_FOUND_REREADS ? 1 : fmax(1, (double)j->lives));
	if (cause == HR_FOUND_REREADS && hr_job_waits_io(w) < EXPLAINS * more &&
	    parsed_per_s(j, files) < PARSES)
		more = 0; /* too little I/O, and too few bytes, to explain this CPU time */
	f = hr__finding_add(j, cause, hr_job_waits_io(w) + w->other_io + more);
	if (f == NULL)
		return;
	hr__finding_place(j, f, files->slowest, HR_ITEM_WAITED);
	describe[cause](j, f, files);
	if (more > 0) {
		double left = 1 - more / (w->cpu + w->core);

		w->cpu *= left;
		w->core *= left;
	}
	w->read = w->metadata = w->other_io = 0;
}

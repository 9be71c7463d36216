/* SPDX-License-Identifier: Apache-2.0 */
/* Findings about waits for batches during which workers use files. */
#include <math.h>

#include "query/diagnosis/findings_internal.h"

#define SMALL_READ  (32.0 * 1024)
#define SMALL_FILE  (128.0 * 1024)
#define MANY_FILES  64u
#define SLOW_FACTOR 4.0 /* a slow file or mount takes so many times as long as the others */
#define AGAIN	    3.0 /* data are read, or files opened, so often for each pass over the data */
/* Saturated: an operation takes almost proportionally longer with more of them under way. */
#define SATURATED 0.5
/* CPU time of the caller for an operation, outside of it. */
#define CALL_S 1.5e-6

/* The seconds that the job waited for its files, and the part of them that a file or mount has. */
static double io_of(const struct hr_job_waits *w)
{
	return w->read + w->metadata;
}

static double share_of(const struct hr_job_files *files, double waited)
{
	return files->waited_s > 0 ? fmin(1, waited / files->waited_s) : 0;
}

static void take_io(struct hr_job_waits *w, double share)
{
	w->read *= 1 - share;
	w->metadata *= 1 - share;
}

static double per_operation(double seconds, double operations)
{
	return seconds / (operations > 0 ? operations : 1);
}

/* ---- one file, or one mount ---- */

static void find_file(struct hr_training_job *j, struct hr_job_waits *w,
		      const struct hr_job_files *f)
{
	const struct hr_item *s = f->slowest;
	double share, own, others, n = s != NULL ? (double)(s->reads + s->opens + s->examined) : 0;
	struct hr_finding *found;

	if (s == NULL || f->files < 3 || n < 2)
		return;
	share = share_of(f, (double)s->waited_ns / 1e9);
	own = per_operation((double)(s->read_ns + s->metadata_ns) / 1e9, n);
	others = per_operation(f->read_s + f->metadata_s - own * n, (double)f->operations - n);
	if (share < 0.5 || own < SLOW_FACTOR * others)
		return;
	found = hr__finding_add(j, HR_FOUND_SLOW_FILE, share * io_of(w));
	if (found == NULL)
		return;
	found->object = hr__item_path(j, s);
	found->mount = hr__item_mount(j, s);
	found->evidence = hr__finding_text(
	    j, "an operation on this file takes %.2g ms, on the %zu others %.2g ms", 1e3 * own,
	    f->files - 1, 1e3 * others);
	found->action = "copy this file to the storage of the other files";
	found->gain_low = 0.6 * found->lost;
	found->gain_high = 1.1 * found->lost;
	found->avoid = "more workers: only the worker that reads this file is slow";
	take_io(w, share);
}

static void find_mount(struct hr_training_job *j, struct hr_job_waits *w,
		       const struct hr_job_files *f)
{
	const struct hr_job_mount *m = f->slowest_mount;
	double share, own, others;
	struct hr_finding *found;

	if (m == NULL || f->operations <= m->operations)
		return;
	share = share_of(f, m->waited_s);
	own = per_operation(m->read_s + m->metadata_s, (double)m->operations);
	others = per_operation(f->read_s + f->metadata_s - m->read_s - m->metadata_s,
			       (double)(f->operations - m->operations));
	/* A few small files elsewhere, such as a list of the samples, are no other mount. */
	if (share < 0.5 || own < SLOW_FACTOR * others || m->read_files > 9 * f->read_files / 10)
		return;
	found = hr__finding_add(j, HR_FOUND_SLOW_MOUNT, share * io_of(w));
	if (found == NULL)
		return;
	found->object = hr__files_folder(j, f->slowest, false);
	found->mount = m->path;
	found->evidence = hr__finding_text(
	    j, "an operation on the %zu files of this mount takes %.2g ms, on others %.2g ms",
	    m->files, 1e3 * own, 1e3 * others);
	found->action =
	    hr__finding_text(j, "copy the files of %s to the storage of the others", m->path);
	found->gain_low = 0.6 * found->lost;
	found->gain_high = 1.1 * found->lost;
	found->avoid = "more cores: the workers wait for files";
	take_io(w, share);
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
	share = fmin(1, (passes.first_wait - passes.later_wait) / fmax(1e-9, io_of(w)));
	if (share < 0.5)
		return;
	found = hr__finding_add(j, HR_FOUND_COLD_CACHE, share * io_of(w));
	if (found == NULL)
		return;
	found->object = hr__files_folder(j, f->slowest, false);
	found->mount = hr__item_mount(j, f->slowest);
	found->evidence = hr__finding_text(j,
					   "a batch needs %.3g ms of I/O in the first pass, and "
					   "%.2g ms in later ones, which the page cache serves",
					   1e3 * passes.first_io, 1e3 * passes.later_io);
	found->action = "read the files into the page cache before the training (for example with "
			"vmtouch -t), or copy them to local storage";
	found->gain_low = 0.5 * found->lost;
	found->gain_high = 1.1 * found->lost;
	found->avoid = "a change for the sake of later passes: they hardly wait for files";
	take_io(w, share);
}

/* ---- what all files have in common ---- */

/* How much later the loops would end if operations took these multiples of their time. */
static void predict_io(struct hr_training_job *j, struct hr_finding *f, double io, double cached)
{
	struct hr_setting setting = HR_SETTING_SAME;

	setting.io = (struct hr_multiple){io, io};
	setting.cached = (struct hr_multiple){cached, cached};
	if (!hr__predict(j, f, &setting)) {
		f->gain_low = 0.5 * f->lost * (1 - io);
		f->gain_high = f->lost;
	}
	f->gain_low *= 0.7;
	/* What the caller does around each operation is CPU time that is saved, too. */
	f->gain_high = fmax(f->gain_high, fmin(1.2 * f->lost, f->lost + 0.2 * j->loop));
}

static double mean_read(const struct hr_job_files *f)
{
	return f->data_reads > 0 ? (double)f->bytes / (double)f->data_reads : 0;
}

static const struct hr_load *load_of(const struct hr_training_job *j,
				     const struct hr_job_files *files)
{
	return files->slowest != NULL ? hr__load_of(&j->d->loads, files->slowest->stream) : NULL;
}

static enum hr_finding_cause cause_of(const struct hr_training_job *j, const struct hr_job_waits *w,
				      const struct hr_job_files *f)
{
	const struct hr_load *load = load_of(j, f);
	double passes = fmax(1, j->all_loops),
	       opened = (double)f->opens / fmax(1, (double)f->read_files);
	double size = (double)f->extent / fmax(1, (double)f->read_files);

	if ((double)f->examined > 3 * (double)f->opens && w->metadata > w->read)
		return HR_FOUND_METADATA;
	if (opened > AGAIN * passes && w->metadata > w->read)
		return HR_FOUND_REOPENS;
	if ((double)f->bytes > AGAIN * passes * (double)f->extent && w->read > w->metadata)
		return HR_FOUND_REREADS;
	if (load != NULL && load->known && load->exponent >= SATURATED && load->under_way > 1.3)
		return HR_FOUND_SATURATED;
	if (size < SMALL_FILE && f->read_files >= MANY_FILES && w->metadata > 0.5 * w->read)
		return HR_FOUND_SMALL_FILES;
	if (w->metadata > w->read)
		return HR_FOUND_METADATA;
	if (mean_read(f) < SMALL_READ && f->data_reads > 8 * f->opens)
		return HR_FOUND_SMALL_READS;
	return HR_FOUND_SLOW_READS;
}

static const char *saturation(struct hr_training_job *j, const struct hr_job_files *files)
{
	const struct hr_load *load = load_of(j, files);

	if (load == NULL)
		return NULL;
	return hr__finding_text(j,
				"%.1f operations are under way at a time, and with twice as many, "
				"each takes %.1f times as long; %.3g MB/s in all",
				load->under_way, pow(2, load->exponent),
				(double)files->bytes / 1e6 /
				    fmax(1e-9, (double)j->lives * j->loop));
}

static void advise(struct hr_training_job *j, struct hr_finding *f,
		   const struct hr_job_files *files, const struct hr_job_waits *w)
{
	const struct hr_load *load = load_of(j, files);
	double passes = fmax(1, j->all_loops), read_files = fmax(1, (double)files->read_files);

	switch (f->cause) {
	case HR_FOUND_METADATA:
		f->evidence =
		    hr__finding_text(j,
				     "%llu opens and %llu other operations on names of %zu files, "
				     "which take %.2g ms each",
				     (unsigned long long)files->opens,
				     (unsigned long long)files->examined, files->files,
				     1e3 * per_operation(files->metadata_s,
							 (double)(files->opens + files->examined)));
		f->action = (double)files->examined > 3 * (double)files->opens
				? "examine files once instead of for each sample (os.stat, "
				  "os.path.exists, os.listdir)"
				: "store the samples in fewer, larger files (tar, Parquet, HDF5)";
		predict_io(j, f, 0.1, 0.1);
		break;
	case HR_FOUND_REOPENS:
		f->evidence = hr__finding_text(j,
					       "each file is opened %.0f times in a pass over the "
					       "data: %llu opens of %zu files",
					       (double)files->opens / read_files / passes,
					       (unsigned long long)files->opens, files->read_files);
		f->action = "open each file once for each worker, and keep it open";
		predict_io(j, f, passes * read_files / (double)files->opens, 0.3);
		break;
	case HR_FOUND_REREADS:
		f->evidence =
		    hr__finding_text(j,
				     "%.4g MB were read from files of %.4g MB, %.0f times as much "
				     "in a pass over the data",
				     (double)files->bytes / 1e6, (double)files->extent / 1e6,
				     (double)files->bytes / (double)files->extent / passes);
		f->action = "read each file once: read only the part that a sample needs, or keep "
			    "the data in memory";
		f->avoid = "more workers: they read the same data once more";
		predict_io(j, f, passes * (double)files->extent / (double)files->bytes,
			   passes * (double)files->extent / (double)files->bytes);
		break;
	case HR_FOUND_SMALL_FILES:
		f->evidence = hr__finding_text(
		    j, "%zu files of %.3g kB on average, which take %.2g ms each to open and read",
		    files->read_files, (double)files->extent / read_files / 1e3,
		    1e3 * per_operation(files->read_s + files->metadata_s, (double)files->opens));
		f->action = "store the samples in fewer, larger files (tar, Parquet, HDF5)";
		predict_io(j, f, 0.1, 0.2);
		break;
	case HR_FOUND_SMALL_READS:
		f->evidence =
		    hr__finding_text(j, "%llu reads of %.0f bytes on average",
				     (unsigned long long)files->data_reads, mean_read(files));
		f->action = "read larger blocks, for example open(path, 'rb', buffering=1 << 20)";
		predict_io(j, f, 0.1, 0.1);
		break;
	case HR_FOUND_SATURATED:
		f->evidence = saturation(j, files);
		f->action = "move the data to faster storage, or read fewer bytes (smaller or "
			    "compressed samples)";
		f->avoid = "more workers: the storage serves them one after the other";
		predict_io(j, f, 0.1, 1);
		f->gain_low *= 0.7;
		break;
	default:
		f->evidence = hr__finding_text(
		    j, "%llu reads of %.4g kB on average, at %.3g MB/s of each reader",
		    (unsigned long long)files->data_reads, mean_read(files) / 1e3,
		    (double)files->bytes / 1e6 / fmax(1e-9, files->read_s));
		hr__add_workers(j, f, 4 * hr__whole_cores(j));
		if (f->action == NULL) {
			f->action = "move the data to faster storage";
			predict_io(j, f, 0.1, 1);
		}
		if (load == NULL || !load->known)
			f->evidence = hr__finding_text(
			    j, "%s; whether the storage serves more reads at a time is not known",
			    f->evidence);
		f->avoid = w->cpu + w->core < 0.1 * w->all
			       ? "more cores: the workers do not compute"
			       : NULL;
	}
}

/* The CPU time that a worker spends around its operations. */
static double around(const struct hr_job_waits *w, const struct hr_job_files *f,
		     enum hr_finding_cause cause)
{
	double all = f->read_s + f->metadata_s, waited = all > 0 ? fmin(1, f->waited_s / all) : 0;
	double cpu = w->cpu + w->core;

	if (cause == HR_FOUND_REREADS) /* what is read again is probably decoded again */
		return cpu;
	if (cause == HR_FOUND_SMALL_READS || cause == HR_FOUND_METADATA ||
	    cause == HR_FOUND_REOPENS)
		return fmin(cpu, waited * CALL_S * (double)f->operations);
	return 0;
}

void hr__find_places(struct hr_training_job *j, struct hr_job_waits *w,
		     const struct hr_job_files *files)
{
	find_file(j, w, files);
	find_mount(j, w, files);
	find_cold(j, w, files);
}

void hr__find_reads(struct hr_training_job *j, struct hr_job_waits *w,
		    const struct hr_job_files *files)
{
	enum hr_finding_cause cause = cause_of(j, w, files);
	struct hr_finding *f;
	double more;

	more =
	    around(w, files, cause) / (cause == HR_FOUND_REREADS ? 1 : fmax(1, (double)j->lives));
	if (cause == HR_FOUND_REREADS && io_of(w) < 0.1 * more)
		more = 0; /* too little I/O to conclude from */
	f = hr__finding_add(j, cause, io_of(w) + w->other_io + more);
	if (f == NULL)
		return;
	f->object = hr__files_folder(j, files->slowest, false);
	f->mount = hr__item_mount(j, files->slowest);
	advise(j, f, files, w);
	if (more > 0) {
		double left = 1 - more / (w->cpu + w->core);

		w->cpu *= left;
		w->core *= left;
	}
	w->read = w->metadata = w->other_io = 0;
}

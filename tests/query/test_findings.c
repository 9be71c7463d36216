/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_findings.c - the first finding of jobs whose every operation is known
 *
 * Each test changes one thing in the job of loader_job.h, which the first finding must name. The last
 * test compares all texts and numbers of these jobs with tests/query/findings.txt. To accept what the
 * program prints now: query_findings_test print > tests/query/findings.txt
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/query/loader_job.h"
#include "tests/query/train_answer.h"
#include "tests/unit.h"

static FILE *printed;	 /* what the queries answer about each job */
static const char *says; /* what the text of the diagnosis contains; NULL: not examined */

/* Prints what the queries answer about the job with this first finding. */
static void print_job(const char *finding)
{
	static const char *const queries[][3] = {{"diagnosis", "top=9"},
						 {"what-if", "mount=/scratch=/data"},
						 {"what-if", "cached=10MiB", "reads=64KiB"},
						 {"what-if", "batch=4", "checkpoint=async"},
						 {"input-wait"},
						 {"blame", "by=folder"},
						 {"what-if", "workers=4"},
						 {"what-if", "io=0.5", "cores=1"},
						 {"forecast", "best=true"}};
	static const char *const of_epochs[] = {"epochs", "steps", "checkpoints", "measures"};

	fprintf(printed, "== %.*s\n", (int)strcspn(finding, "\n"), finding);
	for (size_t i = 0; i < sizeof(queries) / sizeof(queries[0]); i++)
		fixture_print(&fix, printed, queries[i][0], queries[i][1], queries[i][2], 9);
	for (size_t i = 0; plan.epoch && i < sizeof(of_epochs) / sizeof(of_epochs[0]); i++)
		fixture_print(&fix, printed, of_epochs[i], NULL, NULL, 9);
}

/* Makes the job, and compares its first finding: cause, object, mount and worker, separated by commas. */
static void expect(struct sample (*sample)(unsigned, unsigned, unsigned, unsigned *),
		   unsigned files, unsigned passes, const char *finding)
{
	void *state = NULL;

	plan.sample = sample;
	plan.files = files;
	plan.passes = passes;
	assert_int_equal(fixture__job_on(&state, plan.nodes, 0, loader_job_fill), 0);
	fixture_expect(&fix, "SELECT cause, object, mount, worker FROM findings WHERE number = 1",
		       finding);
	if (plan.busy > 0) {
		char busy[16];

		snprintf(busy, sizeof(busy), "%u\n", plan.busy);
		fixture_expect(&fix,
			       "SELECT regexp_extract(evidence, 'busy for ([0-9]+) %', 1) "
			       "FROM findings WHERE number = 1",
			       busy);
		/* Waits cost no more time than it was idle. */
		fixture_expect(
		    &fix,
		    "SELECT coalesce(sum(ns), 0) < 1.02 * (SELECT sum((100 - json_extract(args, "
		    "'$.busy_percent')::INT) / 100 * json_extract(args, '$.since_ns')::BIGINT) "
		    "FROM regions WHERE kind = 'mark') FROM parts "
		    "WHERE part LIKE 'wait%' AND part NOT IN ('wait_hidden', 'wait_end')",
		    "true\n");
	}
	if (plan.killed) { /* any job does */
		free(fixture_refused(&fix, "FROM hr_findings(from_s := 'nan'::DOUBLE)", -EBADMSG));
		fixture_expect(&fix,
			       "SELECT count(*) FROM hr_findings(from_s := 1e300), "
			       "hr_findings(to_s := 0)",
			       "0\n");
	}
	if (plan.linked) {
		char *text = fixture_named(&fix, "diagnosis", NULL, NULL, NULL);

		assert_non_null(strstr(text, "where:   /links/set/ (files of the mount /data)"));
		free(text);
		fixture_expect(&fix, "SELECT place FROM findings WHERE number = 1",
			       "/links/set/ (files of the mount /data)\n");
	}
	if (says != NULL) {
		char *text = fixture_named(&fix, "diagnosis", NULL, NULL, NULL);

		if (strstr(text, says) == NULL)
			fail_msg("no \"%s\" in:\n%s", says, text);
		free(text);
		says = NULL;
	}
	fixture_expect(&fix, "SELECT count(*) FROM hr_because('all') WHERE line IS NULL", "0\n");
	print_job(finding);
	assert_int_equal(fixture_teardown(&state), 0);
	loader_job_usual();
}

/* ---- jobs ---- */

/* A file of 1 MB that is read at once, in 200 us. */
static const struct sample quick = {.opens = 1,
				    .reads = 1,
				    .open_ns = 50 * US,
				    .read_ns = 200 * US,
				    .read_bytes = 1000000,
				    .cpu_ns = 500 * US};

static struct sample quick_sample(unsigned pass, unsigned i, unsigned worker, unsigned *file)
{
	(void)pass, (void)i, (void)worker, (void)file;
	return quick;
}

static struct sample latency(unsigned pass, unsigned i, unsigned worker, unsigned *file)
{
	struct sample s = quick_sample(pass, i, worker, file);

	s.read_ns = 20 * MS;
	return s;
}

/* In the first pass, one worker reads alone. */
static struct sample crowded(unsigned pass, unsigned i, unsigned worker, unsigned *file)
{
	struct sample s = latency(pass, i, worker, file);

	s.reads = pass == 0 && worker == 0 ? 0 : 1;
	return s;
}

static struct sample one_file(unsigned pass, unsigned i, unsigned worker, unsigned *file)
{
	struct sample s = quick_sample(pass, i, worker, file);

	s.read_ns = *file == 7 ? 400 * MS : s.read_ns;
	return s;
}

static bool is_odd(unsigned file)
{
	return file % 3 == 0;
}

static struct sample one_mount(unsigned pass, unsigned i, unsigned worker, unsigned *file)
{
	struct sample s = quick_sample(pass, i, worker, file);

	s.read_ns = is_odd(*file) ? 40 * MS : s.read_ns;
	return s;
}

static bool is_late(unsigned file)
{
	return file >= 20;
}

/* The last file of a node and the first of the next one lie on mounts with the same number. */
static struct sample one_of_two_mounts(unsigned pass, unsigned i, unsigned worker, unsigned *file)
{
	struct sample s = quick_sample(pass, i, worker, file);

	s.read_ns = is_late(*file) ? 40 * MS : s.read_ns;
	return s;
}

static struct sample cold(unsigned pass, unsigned i, unsigned worker, unsigned *file)
{
	struct sample s = quick_sample(pass, i, worker, file);

	s.read_ns = pass == 0 ? 30 * MS : s.read_ns;
	return s;
}

static struct sample again(unsigned pass, unsigned i, unsigned worker, unsigned *file)
{
	struct sample s = quick_sample(pass, i, worker, file);

	s.read_ns = 20 * MS;
	s.read_bytes = 50000000;
	return s;
}

static struct sample reopened(unsigned pass, unsigned i, unsigned worker, unsigned *file)
{
	struct sample s = quick_sample(pass, i, worker, file);

	s.opens = 10;
	s.open_ns = 2 * MS;
	return s;
}

static struct sample slow_open(unsigned pass, unsigned i, unsigned worker, unsigned *file)
{
	struct sample s = quick_sample(pass, i, worker, file);

	s.open_ns = 20 * MS;
	return s;
}

static struct sample small_file(unsigned pass, unsigned i, unsigned worker, unsigned *file)
{
	struct sample s = quick_sample(pass, i, worker, file);

	*file = pass * BATCHES + i;
	s.open_ns = 12 * MS;
	s.read_ns = 5 * MS;
	s.read_bytes = 8000;
	return s;
}

static struct sample examined(unsigned pass, unsigned i, unsigned worker, unsigned *file)
{
	struct sample s = quick_sample(pass, i, worker, file);

	s.examinations = 20;
	s.examine_ns = MS;
	return s;
}

static struct sample small_reads(unsigned pass, unsigned i, unsigned worker, unsigned *file)
{
	struct sample s = quick_sample(pass, i, worker, file);

	s.reads = 200;
	s.read_bytes = 4096;
	s.read_ns = 100 * US;
	return s;
}

static struct sample computes(unsigned pass, unsigned i, unsigned worker, unsigned *file)
{
	struct sample s = quick_sample(pass, i, worker, file);

	s.cpu_ns = 20 * MS;
	return s;
}

static struct sample tiny_reads(unsigned pass, unsigned i, unsigned worker, unsigned *file)
{
	struct sample s = small_reads(pass, i, worker, file);

	s.read_bytes = 512;
	return s;
}

static struct sample examined_there(unsigned pass, unsigned i, unsigned worker, unsigned *file)
{
	struct sample s = examined(pass, i, worker, file);

	s.examine_ns = is_odd(*file) ? s.examine_ns : 1 * US;
	return s;
}

/* One file is read and parsed for each sample. */
static struct sample parsed(unsigned pass, unsigned i, unsigned worker, unsigned *file)
{
	struct sample s = computes(pass, i, worker, file);

	*file = 0;
	return s;
}

/* Each of the two workers reads all files. */
static struct sample copied(unsigned pass, unsigned i, unsigned worker, unsigned *file)
{
	struct sample s = computes(pass, i, worker, file);

	s.cpu_ns = 1 * MS;
	*file = i / 2;
	return s;
}

/* It takes as long for each byte as the others. */
static struct sample one_large_file(unsigned pass, unsigned i, unsigned worker, unsigned *file)
{
	struct sample s = one_file(pass, i, worker, file);

	s.read_bytes *= s.read_ns / quick.read_ns;
	return s;
}

static struct sample one_worker(unsigned pass, unsigned i, unsigned worker, unsigned *file)
{
	struct sample s = quick_sample(pass, i, worker, file);

	s.sleep_ns = worker == 1 ? 60 * MS : 0;
	return s;
}

static struct sample other_worker(unsigned pass, unsigned i, unsigned worker, unsigned *file)
{
	return one_worker(pass, i, 1 - worker, file);
}

/* A few long batches, all of one worker. */
static struct sample uneven(unsigned pass, unsigned i, unsigned worker, unsigned *file)
{
	struct sample s = quick_sample(pass, i, worker, file);

	s.sleep_ns = i % 12 == 11 ? 70 * MS : 0;
	return s;
}

static struct sample sleeps(unsigned pass, unsigned i, unsigned worker, unsigned *file)
{
	struct sample s = quick_sample(pass, i, worker, file);

	s.sleep_ns = 20 * MS;
	return s;
}

static struct sample locked(unsigned pass, unsigned i, unsigned worker, unsigned *file)
{
	struct sample s = quick_sample(pass, i, worker, file);

	s.sleep_ns = 10 * MS;
	s.lock_ns = 10 * MS;
	return s;
}

static struct sample remote(unsigned pass, unsigned i, unsigned worker, unsigned *file)
{
	struct sample s = quick_sample(pass, i, worker, file);

	s.network_ns = 20 * MS;
	return s;
}

static void files_and_mounts(void **state)
{
	loader_job_usual();
	expect(quick_sample, 40, 2, "nothing,,,\n");
	expect(latency, 40, 5, "slow_reads,/data/set/,/data,\n"); /* each pass reads all again */
	plan.linked = true;
	expect(latency, 40, 2, "slow_reads,/links/set/,/data,\n");
	expect(crowded, 40, 3, "slow_reads,/data/set/,/data,\n");
	plan.serial = true;
	expect(crowded, 40, 3, "saturated,/data/set/,/data,\n");
	says = "an operation on this file takes 200 ms";
	expect(one_file, 40, 2, "slow_file,/data/set/f07,/data,\n");
	plan.on_scratch = is_odd;
	expect(one_mount, 40, 2, "slow_mount,/scratch/set/,/scratch,\n");
	plan.on_scratch = is_late;
	plan.nodes = 2;
	expect(one_of_two_mounts, 40, 2, "slow_mount,/scratch/set/,/scratch,\n");
	expect(cold, 40, 3, "cold_cache,/data/set/,/data,\n");
}

static void ways_to_read(void **state)
{
	expect(again, 2, 2, "rereads,/data/set/,/data,\n");
	expect(reopened, 40, 2, "reopens,/data/set/,/data,\n");
	says = "to open one takes 12.0 ms, to read it 5.00 ms";
	expect(small_file, 80, 2, "small_files,/data/set/,/data,\n");
	expect(examined, 40, 2, "metadata,/data/set/,/data,\n");
	expect(slow_open, 40, 5, "metadata,/data/set/,/data,\n"); /* once in each pass */
	expect(small_reads, 40, 2, "small_reads,/data/set/,/data,\n");
	says = "workers read 76.3 MiB from 977 KiB of files: 40 times each in a pass over the data";
	expect(parsed, 2, 2, "rereads,/data/set/f00,/data,\n");
	plan.iterable = true;
	plan.step_ns = 18 * MS;
	says = "2 workers read 2.0 times the bytes of the files";
	expect(copied, 20, 2, "copies,/data/set/f00,/data,\n");
	plan.serial = true; /* also if the storage serves one at a time */
	expect(tiny_reads, 40, 2, "small_reads,/data/set/,/data,\n");
	plan.on_scratch = is_odd; /* one of two mounts is slower */
	expect(examined_there, 40, 2, "metadata,/scratch/set/,/scratch,\n");
	expect(one_large_file, 40, 2, "slow_reads,/data/set/,/data,\n");
}

static void workers(void **state)
{
	says = "where:   worker 1 of 2, counted from 0: __getitem__";
	expect(one_worker, 40, 2, "slow_worker,,,1\n");
	expect(other_worker, 40, 2, "slow_worker,,,0\n");
	plan.step_ns = 8 * MS;
	says = "for these, the worker mostly sleeps";
	expect(uneven, 40, 2, "prefetch,,,\n");
	says = "do:      remove the sleep (time.sleep, a retry, a rate limit), or if it must stay";
	expect(sleeps, 40, 2, "sleep,,,\n");
	says = "probably, the worker that holds the lock sleeps";
	expect(locked, 40, 2, "lock,,,\n");
	says = "the worker that made the batch waited for the network for 99 % of the lost";
	expect(remote, 40, 2, "network,,,\n");
	expect(computes, 40, 2, "few_workers,,,\n");
	plan.killed = true;
	expect(computes, 40, 2, "few_workers,,,\n");
	plan.hidden = true;
	expect(computes, 40, 2, "nothing,,,\n");
	/* An accelerator that is nearly always busy hides all waits, one that is idle none. */
	plan.busy = 97;
	expect(computes, 40, 2, "nothing,,,\n");
	plan.busy = 30;
	expect(computes, 40, 2, "few_workers,,,\n");
	/* One that is busy for a part of the waits hides this part. */
	plan.busy = 70;
	says = "the accelerator still worked, so they cost no time";
	expect(computes, 40, 2, "few_workers,,,\n");
}

static struct sample waits_for_cores(unsigned pass, unsigned i, unsigned worker, unsigned *file)
{
	struct sample s = computes(pass, i, worker, file);

	s.cpu_ns = 5 * MS;
	s.core_ns = 15 * MS;
	return s;
}

static struct sample mapped(unsigned pass, unsigned i, unsigned worker, unsigned *file)
{
	struct sample s = quick_sample(pass, i, worker, file);

	s.fault_ns = 20 * MS;
	return s;
}

static void cores(void **state)
{
	plan.cpus = 1;
	expect(computes, 40, 2, "few_cores,,,\n");
	plan.cpus = 2;
	expect(waits_for_cores, 40, 2, "disturbed,,,\n");
	plan.quota_milli = 500;
	expect(waits_for_cores, 40, 2, "few_cores,,,\n");
	plan.others = 6;
	plan.step_ns = 8 * MS;
	expect(waits_for_cores, 40, 2, "disturbed,,,\n");
	plan.others = 6;
	plan.step_ns = 8 * MS;
	expect(computes, 40, 2, "few_workers,,,\n");
	expect(mapped, 40, 2, "mapped_files,/data/set/,/data,\n");
}

static struct sample quick_without_core(unsigned pass, unsigned i, unsigned worker, unsigned *file)
{
	struct sample s = quick_sample(pass, i, worker, file);

	s.core_ns = 1 * MS;
	return s;
}

static void lines(void **state)
{
	plan.lines = 1;
	says = "set num_workers=8 of the DataLoader (now 2), or make data.py:1 load faster";
	expect(computes, 40, 2, "few_workers,,,\n");
	plan.lines = 1;
	plan.cpus = 1;
	says = "make data.py:1 load faster; or request 3 cores (now 1), which saves ";
	expect(computes, 40, 2, "few_cores,,,\n");
	plan.lines = 1;
	says = "where:   data.py:1 load (100 % of the wait)";
	expect(locked, 40, 2, "lock,,,\n");
	plan.lines = 6;
	says = "needs no lock; `headrace query STORE blame by=line` lists the lines";
	expect(locked, 40, 2, "lock,,,\n");
	plan.lines = 1; /* 8 samples in all */
	plan.unsampled = 9;
	says = "needs no lock; `headrace query STORE blame by=line` lists the lines";
	expect(locked, 40, 2, "lock,,,\n");
	plan.lines = 1; /* the place is a file */
	expect(latency, 40, 5, "slow_reads,/data/set/,/data,\n");
}

static void the_line_that_made_the_loader(void **state)
{
	plan.made = "{\"made\":\"a\\u001b.py:9 main\"}";
	plan.start_ns = 1 * MS;
	says = "set num_workers=8 of the DataLoader (a\\x1B.py:9 main, now 2)";
	expect(computes, 40, 2, "few_workers,,,\n");
	plan.made = "{\"made\":\"a.py:9 main\"}";
	plan.start_ns = 300 * MS;
	says = "set persistent_workers=True of the DataLoader (a.py:9 main)";
	expect(quick_sample, 40, 5, "worker_start,,,\n");
}

/* A batch takes 18 ms, of which backward() takes `ms`, and so much CPU time. */
static void plan_backward(uint64_t ms, uint64_t cpu_ms)
{
	plan.step_ns = 18 * MS;
	plan.backward_ns = ms * MS;
	plan.backward_cpu_ns = cpu_ms * MS;
}

static void what_keeps_the_training_thread_from_computing(void **state)
{
	plan.step_ns = 18 * MS;
	plan.no_core_ns = 6 * MS;
	plan.cpus = 2;
	says = "shown:   between waits for batches, the training thread computes for 67 % of the "
	       "time, and waits for a core for 33 %";
	expect(quick_sample, 40, 2, "no_core,,,\n");
	plan.step_ns = 18 * MS;
	plan.no_core_ns = 6 * MS;
	plan.cpus = 1;
	says = "do:      make the transforms of the data set faster, because workers use the "
	       "cores; or request more cores";
	expect(quick_sample, 40, 2, "no_core,,,\n");
	plan.step_ns = 18 * MS;
	plan.no_core_ns = 6 * MS;
	plan.cpus = 1;
	plan.others = 1;
	says = "do:      let the training process compute with fewer threads";
	expect(quick_sample, 40, 2, "no_core,,,\n");
	plan.step_ns = 18 * MS;
	plan.no_core_ns = 6 * MS;
	plan.quota_milli = 2000;
	says = "do:      raise the CPU quota (cpu.max of the cgroup, now 2 cores for each rank)";
	expect(quick_sample, 40, 2, "no_core,,,\n");
	plan_backward(12, 4);
	plan.accumulates = 4;
	plan.nodes = 2;
	says = "for 67 % of it, its thread neither computes nor waits for a late rank; 4 calls of "
	       "backward() for each step";
	expect(quick_sample, 40, 2, "gradients,,,\n");
	plan_backward(12, 4);
	plan.nodes = 2;
	says = "do:      exchange fewer bytes: a larger batch for each rank";
	expect(quick_sample, 40, 2, "gradients,,,\n");
	plan_backward(12, 4);
	expect(quick_sample, 40, 2, "nothing,,,\n"); /* a single rank */
}

static void steps_of_the_optimizer(void **state)
{
	plan_backward(4, 4);
	plan.optimizer_ns = 10 * MS;
	plan.updates = "{\"type\":\"Adam\",\"elements\":20000,\"idle\":18000,\"rows\":300,"
		       "\"columns\":48}";
	says =
	    "90 % of the 20,000 numbers that Adam updates are in rows whose gradient is 0, as in "
	    "the embedding of 300 x 48";
	expect(quick_sample, 40, 2, "optimizer,,,\n");
	plan_backward(4, 4);
	plan.optimizer_ns = 10 * MS;
	plan.updates = "{\"type\":\"Adam\",\"elements\":20000,\"idle\":0}";
	says = "do:      pass fused=True to Adam (on the CPU, with PyTorch 2.4 or newer)";
	expect(quick_sample, 40, 2, "optimizer,,,\n");
	plan_backward(4, 4);
	plan.optimizer_ns = 10 * MS;
	plan.updates = "{\"type\":\"SGD\",\"elements\":20000,\"idle\":0}";
	says = "do:      make fewer steps: larger batches, or several batches for each step";
	expect(quick_sample, 40, 2, "optimizer,,,\n");
	plan_backward(4, 4);
	plan.optimizer_ns = 3 * MS;
	plan.updates = "{\"elements\":-1,\"idle\":\"x\",\"fused\":true}";
	expect(quick_sample, 40, 2, "nothing,,,\n"); /* backward() takes longer */
}

static void padding(void **state)
{
	plan_backward(12, 12);
	plan.padding = "{\"tokens\":2560,\"padded\":1920,\"beyond\":1280}";
	says =
	    "shown:   75 % of the elements of the first batches are padding (attention_mask); 50 % "
	    "are beyond the longest sequence";
	expect(quick_sample, 40, 2, "padding,,,\n");
	plan_backward(12, 12);
	plan.padding = "{\"tokens\":2560,\"padded\":1920,\"beyond\":0}";
	says = "do:      put sequences of similar length into a batch";
	expect(quick_sample, 40, 2, "padding,,,\n");
}

static void compilers(void **state)
{
	plan.step_ns = 18 * MS;
	plan.own_ns = 4 * MS;
	plan.compiler = "jax";
	says = "after the first 2 batches, jax still traces and compiles for ";
	expect(quick_sample, 40, 2, "compiles,,,\n");
}

static void the_training_thread(void **state)
{
	plan.start_ns = 300 * MS;
	expect(quick_sample, 40, 2, "worker_start,,,\n");
	plan.start_ns = 300 * MS;
	expect(quick_sample, 40, 1, "worker_start,,,\n");
	plan.late_ns = 400 * MS;
	expect(quick_sample, 40, 1, "worker_start,,,\n");
	plan.handover_ns = 20 * MS;
	expect(quick_sample, 40, 2, "handover,,,\n");
	plan.handover_ns = 20 * MS;
	plan.wait_cpu_ns = 15 * MS;
	says = "20.0 ms a batch; the training thread itself computes for 15.0 ms of it";
	expect(quick_sample, 40, 2, "handover,,,\n");
	plan.handover_ns = 20 * MS;
	plan.others = 1;
	says = "other threads of the training process compute (1.0 cores between waits)";
	expect(quick_sample, 40, 2, "handover,,,\n");
	plan.handover_ns = 20 * MS;
	says = "workers had no core for 77 % of the time in which they could compute";
	expect(quick_without_core, 40, 2, "handover,,,\n");
	plan.handover_ns = 2 * MS; /* nothing to do */
	says = "which is usual";
	expect(quick_sample, 40, 2, "handover,,,\n");
	plan.extra = LISTS;
	expect(quick_sample, 40, 2, "listing,/data/set/,,\n");
	plan.step_ns = 18 * MS;
	plan.extra = READS;
	expect(quick_sample, 40, 2, "own_io,/data/set/f00,,\n");
	plan.step_ns = 18 * MS;
	plan.extra = SYNCS;
	expect(quick_sample, 40, 2, "sync,/data/set/f00,,\n");
	plan.step_ns = 18 * MS;
	plan.extra = COMPUTES;
	expect(quick_sample, 40, 2, "heavy_main,,,\n");
	plan.step_ns = 18 * MS;
	plan.extra = COMPUTES;
	plan.own_ns = 10 * MS;
	says = "do:      make log.py:7 write faster, or do it seldom; if it works on the batch";
	expect(quick_sample, 40, 2, "heavy_main,,,\n");
	plan.own_ns = 1500 * US;
	says = "where:   log.py:7 write (117 ms in lib/csv.py:9 row)";
	expect(quick_sample, 40, 2, "own_code,,,\n");
	plan.own_ns = 400 * US;
	says = "outside of the model, the training thread was longest in log.py:7 write (";
	expect(quick_sample, 40, 2, "nothing,,,\n");
	plan.step_ns = 18 * MS;
	plan.extra = VALIDATES;
	plan.epoch = true;
	expect(quick_sample, 40, 4, "validation,,,\n");
	plan.step_ns = 18 * MS;
	plan.extra = VALIDATES;
	plan.own_ns = 10 * MS;
	says = "do:      make sgd.py:2 step faster, or validate less often, or on fewer samples";
	expect(quick_sample, 40, 4, "validation,,,\n");
	plan.extra = VALIDATES; /* its waits have the same cause as those of the training */
	expect(latency, 40, 4, "slow_reads,/data/set/,/data,\n");
	plan.extra = RESTORES;
	expect(quick_sample, 40, 2, "restore,/scratch/save.pt,,\n");
	plan.python = "nfs4";
	says = "install Python on local storage";
	expect(quick_sample, 40, 2, "imports,/usr,/usr,\n");
	plan.python = "ext4";
	says = "start it again before you change anything";
	expect(quick_sample, 40, 2, "imports,/usr,/usr,\n");
	plan.extra = CHECKPOINTS;
	plan.epoch = true;
	expect(quick_sample, 40, 2, "checkpoint,/scratch/save.pt,,\n");
}

static void steps_without_a_loader(void **state)
{
	plan.epoch = true;
	expect(quick_sample, 1, 0, "own_mapped_files,,,\n");
}

static char *text;

static void all_texts_and_numbers(void **state)
{
	fflush(printed);
	fixture_same(HR_FINDINGS, text);
}

#define WAIT_HANGS                                                                                 \
	"{\"in\":\"wait\",\"tid\":1,\"since_ns\":3999000000,\"usual_ns\":2000000,"                 \
	"\"call\":\"poll\",\"line\":\"train.py:3 main\",\"stack\":\"train.py:3 main\"}"

static void hangs(void **state)
{
	plan.exit = "SIGTERM";
	plan.trains_hang = WAIT_HANGS;
	plan.worker_hang =
	    "{\"in\":\"fetch\",\"tid\":2,\"since_ns\":3998000000,\"usual_ns\":7000000,"
	    "\"call\":\"futex\",\"line\":\"data.py:9 load\",\"stack\":\"data.py:9 load < "
	    "data.py:2 item\",\"threads\":[{\"line\":\"pool.py:1 run\"},{\"line\":\"a.py:2 f\"}]}";
	says = "where:   worker 0 of 2, counted from 0: data.py:9 load";
	expect(computes, 40, 2, "hang,,,0\n");
	/* The worker has not been marked. */
	plan.exit = "SIGKILL";
	plan.trains_hang = WAIT_HANGS;
	says = "no step in the last 5.00 s: the training waits for a batch of its workers";
	expect(computes, 40, 2, "hang,,,\n");
	plan.exit = "SIGINT";
	plan.trains_hang = "{\"in\":\"step\",\"tid\":1,\"since_ns\":4000000000,\"usual_ns\":0,"
			   "\"call\":\"read\",\"target\":\"/mnt/x\",\"line\":\"a.py:4 log\"}";
	says = "no step in the last 5.00 s: the training thread reads /mnt/x";
	expect(computes, 40, 2, "hang,,,\n");
	plan.exit = "SIGTERM";
	plan.trains_hang = "{\"in\":\"step\",\"tid\":1,\"since_ns\":4000000000,\"usual_ns\":0,"
			   "\"call\":\"futex\",\"line\":\"a.py:4 log\","
			   "\"stack\":\"multiprocessing/pool.py:765 wait < a.py:4 log\"}";
	says = "do:      find out whether a process of the pool was killed";
	expect(computes, 40, 2, "hang,,,\n");
	plan.exit = "SIGTERM";
	plan.trains_hang =
	    "{\"in\":\"group\",\"tid\":1,\"since_ns\":4000000000,\"usual_ns\":0,"
	    "\"call\":\"\",\"line\":\"a.py:4 main\",\"stack\":\"distributed/c10d.py:9 "
	    "init_process_group < a.py:4 main\"}";
	says = "no step in the last 5.00 s: 1 rank waits in init_process_group() for the others";
	expect(computes, 40, 2, "hang,,,\n");
	/* What is missing, or of another type. */
	plan.exit = "SIGINT";
	plan.trains_hang = "{\"in\":1,\"tid\":1,\"since_ns\":-1,\"call\":[],\"threads\":[7,{}]}";
	says = "no step in the last 1.00 s: the training thread runs Python or C code";
	expect(computes, 40, 2, "hang,,,\n");
	/* It ended by itself, or has made a step since then. */
	plan.exit = "0";
	plan.trains_hang = WAIT_HANGS;
	plan.worker_hang = "{}";
	expect(computes, 40, 2, "wait_unknown,,,\n");
	plan.exit = "SIGTERM";
	plan.trains_hang = WAIT_HANGS;
	plan.recovers = true;
	expect(computes, 40, 2, "few_workers,,,\n");
}

static void signals(void **state)
{
	plan.exit = "1";
	plan.worker_exit = "SIGBUS";
	says = "worker process 3 was killed by SIGBUS";
	expect(computes, 40, 2, "failed,,,1\n");
	plan.exit = "SIGKILL";
	says = "3 processes were killed by signals: first the training process 1, by SIGKILL";
	expect(computes, 40, 2, "failed,,,\n");
	/* The training was complete, or was ended by another signal. */
	plan.exit = "0";
	plan.worker_exit = "SIGKILL";
	expect(computes, 40, 2, "few_workers,,,\n");
	plan.exit = "SIGTERM";
	expect(computes, 40, 2, "few_workers,,,\n");
}

#define RAISES "{\"type\":\"KeyError\",\"line\":\"data.py:9 load\"}"

static void exceptions(void **state)
{
	plan.exit = "1";
	plan.raises = RAISES;
	says = "worker process 2 raised KeyError while it made a batch";
	expect(computes, 40, 2, "failed,,,0\n");
	plan.exit = "1";
	plan.raises = RAISES;
	says = "where:   worker 0 of 2, counted from 0: data.py:9 load";
	expect(computes, 40, 2, "failed,,,0\n");
	/* The signal explains more; what is no text; the program went on. */
	plan.exit = "1";
	plan.worker_exit = "SIGBUS";
	plan.raises = RAISES;
	says = "worker process 3 was killed by SIGBUS";
	expect(computes, 40, 2, "failed,,,1\n");
	plan.exit = "2";
	plan.raises = "{\"type\":7,\"line\":[]}";
	says = "worker process 2 raised an exception while it made a batch";
	expect(computes, 40, 2, "failed,,,0\n");
	/* Of another machine. */
	plan.exit = "2";
	plan.raises = "{\"type\":\"a\\u001bb\",\"line\":\"x\\u001b.py:1 f\"}";
	says = "counted from 0: x\\x1B.py:1 f";
	expect(computes, 40, 2, "failed,,,0\n");
	plan.exit = "0";
	plan.raises = RAISES;
	expect(computes, 40, 2, "few_workers,,,\n");
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(files_and_mounts),
	    cmocka_unit_test(ways_to_read),
	    cmocka_unit_test(workers),
	    cmocka_unit_test(cores),
	    cmocka_unit_test(lines),
	    cmocka_unit_test(the_line_that_made_the_loader),
	    cmocka_unit_test(what_keeps_the_training_thread_from_computing),
	    cmocka_unit_test(steps_of_the_optimizer),
	    cmocka_unit_test(padding),
	    cmocka_unit_test(compilers),
	    cmocka_unit_test(the_training_thread),
	    cmocka_unit_test(steps_without_a_loader),
	    cmocka_unit_test(hangs),
	    cmocka_unit_test(exceptions),
	    cmocka_unit_test(signals),
	    cmocka_unit_test(all_texts_and_numbers),
	};
	bool prints = argc > 1;
	int out = prints ? dup(STDOUT_FILENO) : -1;
	size_t bytes;
	int failed;

	if (prints) /* what cmocka prints goes elsewhere */
		dup2(STDERR_FILENO, STDOUT_FILENO);
	printed = open_memstream(&text, &bytes);
	failed = _cmocka_run_group_tests("findings", tests,
					 sizeof(tests) / sizeof(tests[0]) - prints, NULL, NULL);
	fclose(printed);
	if (prints)
		dprintf(out, "%s", text);
	free(text);
	return failed;
}

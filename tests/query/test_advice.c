/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_advice.c - what input-wait advises: ranks of 100 ms, each of another kind
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "common/batch.h"
#include "tests/query/fixture_frames.h"
#include "tests/query/train_answer.h"

#define SPAN_MS 100u
#define MIB	UINT64_C(1048576)

/* Of /data (1) the job gets 12 GiB/s at least, of /scratch (2) 200 MiB/s. */
static const struct {
	bool no_rank;
	unsigned wait_ms;
	unsigned workers, fetch_ms; /* of each; 0: not recorded */
	unsigned cpus, first_cpu;   /* 0: not known */
	unsigned io_ms;		    /* of each worker, or of the rank, from the start on */
	unsigned core_ms;	    /* each fetch waited for a core; 0: it does not say */
	unsigned cpu_ms, faults;    /* of each fetch; 0: it does not say */
	uint64_t mount, reads, bytes, read_ms; /* all told */
	const char *advice, *why;
} cases[] = {
    {.wait_ms = 4,
     .workers = 1,
     .fetch_ms = 99,
     .advice = "none",
     .why = "waits are 4.0 % of 0.1 s; less than 5 %: there is little to gain"},
    {.wait_ms = 30,
     .io_ms = 10,
     .advice = "more workers",
     .why = "no workers: the training process makes its batches itself, while nothing is computed; "
	    "I/O was in flight during 33 % of the waits; the cause is not reads or mounts"},
    {.wait_ms = 30,
     .workers = 2,
     .fetch_ms = 90,
     .io_ms = 18,
     .mount = 1,
     .reads = 1000,
     .bytes = 1000 * MIB,
     .read_ms = 1,
     .advice = "more workers",
     .why = "workers: 2, making batches 90 % of the time: more workers would make more batches, "
	    "unless cores or storage limit them; 20 % of that is I/O"},
    {.wait_ms = 30,
     .workers = 2,
     .fetch_ms = 90,
     .io_ms = 81,
     .mount = 1,
     .reads = 100,
     .bytes = 100 * 8192,
     .read_ms = 80,
     .advice = "more workers, bigger reads, another mount",
     .why = "90 % of that is I/O; the mean read is 8.0 KiB; /data gives a reader"},
    {.wait_ms = 30,
     .workers = 2,
     .fetch_ms = 60,
     .io_ms = 45,
     .mount = 2,
     .reads = 10,
     .bytes = 10 * MIB,
     .read_ms = 50,
     .advice = "another mount",
     .why = "it is unclear whether more workers would help; 75 % of that is I/O; the mean read is "
	    "1.0 MiB; /scratch gives a reader 200.0 MiB/s, /data 1"},
    {.wait_ms = 30,
     .workers = 2,
     .fetch_ms = 20,
     .io_ms = 5,
     .advice = "not known",
     .why = "workers: 2, making batches 20 % of the time only: more of them would wait, too"},
    {.wait_ms = 30,
     .workers = 2,
     .io_ms = 6,
     .advice = "not known",
     .why = "no fetches were recorded: it is unknown how busy the workers were; I/O was in flight "
	    "during 20 % of"},
    {.wait_ms = 30,
     .workers = 2,
     .fetch_ms = 90,
     .io_ms = 18,
     .cpus = 2,
     .advice = "more cores",
     .why = "workers: 2, making batches 90 % of the time, cores: 2: more workers would wait for a "
	    "core; 20 % of that is I/O"},
    {.wait_ms = 30, /* as many for itself as this one and the next together */
     .workers = 2,
     .fetch_ms = 90,
     .io_ms = 81,
     .cpus = 4,
     .first_cpu = 8,
     .advice = "more workers",
     .why = "workers: 2, making batches 90 % of the time, cores: 2: more workers would make more "
	    "batches, unless storage limits them; 90 % of that is I/O"},
    {.wait_ms = 30,
     .workers = 1,
     .fetch_ms = 90,
     .io_ms = 18,
     .cpus = 4,
     .first_cpu = 8,
     .advice = "more workers",
     .why = "workers: 1, making batches 90 % of the time, cores: 2: more workers would make more "
	    "batches, unless storage limits them"},
    {.wait_ms = 30,
     .io_ms = 10,
     .cpus = 1,
     .first_cpu = 3,
     .advice = "more cores",
     .why = "no workers, and one core, which a worker would take from the training process"},
    {.wait_ms = 30, /* a mapped file: 90 % of the fetches is faults */
     .workers = 1,
     .fetch_ms = 98,
     .io_ms = 1,
     .cpu_ms = 9,
     .faults = 47574,
     .advice = "mapped files, more workers",
     .why = "workers: 1, making batches 98 % of the time: more workers would make more batches, "
	    "unless cores or storage limit them; of that 1 % is I/O, 9 % computing, 90 % neither "
	    "(waiting for a core, or for page faults: 47,574 of mapped files); mapped files are "
	    "read page by page: read() them"},
    {.wait_ms = 30, /* whose workers do not need their cores */
     .workers = 2,
     .fetch_ms = 90,
     .cpu_ms = 9,
     .faults = 40,
     .cpus = 2,
     .first_cpu = 20,
     .advice = "mapped files, more workers",
     .why =
	 "0 % is I/O, 10 % computing, 90 % neither (waiting for a core, or for page faults: 80 of "
	 "mapped files)"},
    {.wait_ms = 30, /* too few faults for it */
     .workers = 2,
     .fetch_ms = 90,
     .io_ms = 9,
     .cpu_ms = 18,
     .faults = 1,
     .cpus = 16,
     .first_cpu = 24,
     .advice = "more cores",
     .why = "workers: 2, making batches 90 % of the time, cores: 16: they wait more than they read "
	    "or compute, and more of them would, too; of that 10 % is I/O, 20 % computing, 70 % "
	    "neither (waiting for a core, or for page faults: 2 of mapped files)"},
    {.wait_ms = 30,
     .workers = 2,
     .fetch_ms = 90,
     .cpu_ms = 9,
     .advice = "more cores",
     .why =
	 "90 % of the time: they wait more than they read or compute, and more of them would, "
	 "too; of that 0 % is I/O, 10 % computing, 90 % neither (waiting for a core, a lock or the "
	 "network, or asleep)"},
    {.wait_ms = 30,
     .workers = 2,
     .fetch_ms = 60,
     .cpu_ms = 6,
     .advice = "not known",
     .why = "it is unclear whether more workers would help; of that 0 % is I/O, 10 % computing, 90 "
	    "% "},
    {.wait_ms = 30, /* known to sleep: that a core, or a worker, would help is not */
     .workers = 2,
     .fetch_ms = 90,
     .core_ms = 1,
     .cpu_ms = 9,
     .faults = 1,
     .cpus = 2,
     .first_cpu = 40,
     .advice = "not known",
     .why = "they wait, and for no core: more of them help if they wait for the network; of that 0 "
	    "% is I/O, 10 % computing, 90 % neither (waiting for a lock or the network, or "
	    "asleep), and 1 % waiting for a core, in I/O or not"},
    {.wait_ms = 30, /* known to wait for cores, though there are enough of them by affinity */
     .workers = 2,
     .fetch_ms = 90,
     .core_ms = 70,
     .cpu_ms = 18,
     .faults = 40,
     .cpus = 16,
     .first_cpu = 44,
     .advice = "more cores",
     .why = "cores: 16: they wait for cores, and more of them would, too; of that 0 % is I/O, 20 % "
	    "computing, 80 % neither (waiting for a core), and 78 % waiting for a core"},
    {.wait_ms = 30, /* in reads of cached pages */
     .workers = 2,
     .fetch_ms = 90,
     .io_ms = 81,
     .core_ms = 63,
     .cpu_ms = 18,
     .mount = 2,
     .reads = 100,
     .bytes = 100 * 8192,
     .read_ms = 80,
     .advice = "more cores",
     .why =
	 "they wait for cores, and more of them would, too; of that 90 % is I/O, 10 % computing, "
	 "0 % neither, and 70 % waiting for a core, in I/O or not"},
    {.wait_ms = 30, /* for pages, and known for that */
     .workers = 2,
     .fetch_ms = 90,
     .core_ms = 9,
     .cpu_ms = 18,
     .faults = 40,
     .advice = "mapped files, more workers",
     .why =
	 "80 % neither (waiting for page faults: 80 of mapped files), and 10 % waiting for a core"},
    {.wait_ms = 30, /* computing: as without these numbers */
     .workers = 2,
     .fetch_ms = 90,
     .io_ms = 18,
     .cpu_ms = 63,
     .advice = "more workers",
     .why = "of that 20 % is I/O, 70 % computing, 10 % neither (waiting for a core, a lock or the "
	    "network, or asleep); the cause is not reads or mounts"},
    {.wait_ms = 30, /* the processor's time in I/O is I/O */
     .workers = 2,
     .fetch_ms = 90,
     .io_ms = 36,
     .cpu_ms = 90,
     .advice = "more workers",
     .why = "of that 40 % is I/O, 60 % computing, 0 % neither; the cause is not reads"},
    {.no_rank = true,
     .wait_ms = 50,
     .workers = 1,
     .fetch_ms = 80,
     .advice = "more workers",
     .why = "workers: 1, making batches 80 % of the time"},
};
#define CASES	 (sizeof(cases) / sizeof(cases[0]))
#define PROCS	 (3 * CASES) /* each rank's own, and two more */
#define PROC(i)	 (3 * (i) + 1)
#define NS(ms)	 ((ms)*UINT64_C(1000000))
#define MAKER(i) (cases[i].workers > 0 ? PROC(i) + 1 : PROC(i))

static void send_processes(struct fixture__stream *s)
{
	Headrace__Process rows[PROCS], *list[PROCS];
	Headrace__Processes processes = HEADRACE__PROCESSES__INIT;
	Headrace__Frame frame = HEADRACE__FRAME__INIT;

	for (unsigned i = 0; i < CASES; i++) {
		for (unsigned k = 0; k <= cases[i].workers; k++) {
			Headrace__Process *row = &rows[processes.n_rows];

			headrace__process__init(row);
			row->proc = PROC(i) + k;
			row->pid = (int32_t)row->proc;
			row->rank_plus1 = cases[i].no_rank ? 0 : i + 1;
			row->worker_plus1 = k;
			row->cpus = cases[i].cpus;
			row->first_cpu = cases[i].first_cpu;
			list[processes.n_rows++] = row;
		}
	}
	processes.rows = list;
	frame.body_case = HEADRACE__FRAME__BODY_PROCESSES;
	frame.processes = &processes;
	fixture__send(s, &frame);
}

/* What a worker's fetch says at its end. */
static uint32_t spent(struct hr_regions *r, unsigned i, unsigned worker)
{
	char text[128];
	uint32_t id;
	int n = snprintf(text, sizeof(text), "{\"loader\":0,\"worker\":%u,\"cpu_ns\":%llu", worker,
			 (unsigned long long)NS(cases[i].cpu_ms));

	if (cases[i].core_ms > 0)
		n += snprintf(text + n, sizeof(text) - (size_t)n, ",\"core_wait_ns\":%llu",
			      (unsigned long long)NS(cases[i].core_ms));
	if (cases[i].faults > 0)
		n += snprintf(text + n, sizeof(text) - (size_t)n, ",\"major_faults\":%u",
			      cases[i].faults);
	text[n++] = '}';
	assert_int_equal(hr_regions_text(r, text, (size_t)n, &id), 0);
	return cases[i].cpu_ms > 0 ? id : 0;
}

static void send_regions(struct fixture__stream *s)
{
	struct hr_regions *r;

	assert_int_equal(hr_regions_new(&r), 0);
	for (unsigned i = 0; i < CASES; i++) {
		struct hr_region region = {.proc = PROC(i),
					   .tid = (uint32_t)PROC(i),
					   .kind = HR_REGION_STEP,
					   .count = 1,
					   .start_ns = FIX_BOOT_NS,
					   .dur_ns = NS(SPAN_MS),
					   .epoch = HR_REGION_UNKNOWN};

		assert_int_equal(hr_regions_add(r, &region), 0);
		region.kind = HR_REGION_INPUT_WAIT;
		region.dur_ns = NS(cases[i].wait_ms);
		assert_int_equal(hr_regions_add(r, &region), 0);
		region.kind = HR_REGION_FETCH;
		region.dur_ns = NS(cases[i].fetch_ms);
		for (unsigned k = 1; cases[i].fetch_ms > 0 && k <= cases[i].workers; k++) {
			region.proc = PROC(i) + k;
			region.tid = (uint32_t)region.proc;
			region.args = spent(r, i, k - 1);
			assert_int_equal(hr_regions_add(r, &region), 0);
		}
	}
	fixture__send_regions(s, r);
}

static void send_events(struct fixture__stream *s)
{
	struct hr_event events[PROCS];
	struct hr_task tasks[PROCS];
	uint32_t n = 0;

	for (unsigned i = 0; i < CASES; i++) {
		for (unsigned k = 0; k < 2 && k < 1 + cases[i].workers; k++) {
			uint64_t proc = MAKER(i) + k;

			if (cases[i].io_ms == 0 || proc > PROC(i) + cases[i].workers)
				continue;
			tasks[n] = (struct hr_task){proc, (uint32_t)proc};
			events[n] = (struct hr_event){.start_ns = FIX_BOOT_NS,
						      .dur_ns = NS(cases[i].io_ms),
						      .task = n,
						      .op = HR_OP_read,
						      .file = 1,
						      .fd = 3,
						      .offset = HR_OFFSET_NONE,
						      .asked = HR_ASKED_NONE,
						      .ret = 1};
			n++;
		}
	}
	fixture__send_events(s, events, n, tasks, n);
}

static void send_rollups(struct fixture__stream *s)
{
	Headrace__Rollup rows[CASES], *list[CASES];
	Headrace__RollupBatch batch = HEADRACE__ROLLUP_BATCH__INIT;
	Headrace__Frame frame = HEADRACE__FRAME__INIT;

	for (unsigned i = 0; i < CASES; i++) {
		Headrace__Rollup *row = &rows[batch.n_rows];

		if (cases[i].reads == 0)
			continue;
		headrace__rollup__init(row);
		row->proc = MAKER(i);
		row->op = HR_OP_read;
		row->mount = (uint32_t)cases[i].mount;
		row->count = cases[i].reads;
		row->bytes = cases[i].bytes;
		row->dur_ns = NS(cases[i].read_ms);
		list[batch.n_rows++] = row;
	}
	batch.window_start_ns = FIX_BOOT_NS;
	batch.window_ns = 10000000000u;
	batch.rows = list;
	frame.body_case = HEADRACE__FRAME__BODY_ROLLUPS;
	frame.rollups = &batch;
	fixture__send(s, &frame);
}

static void fill(struct fixture__stream *s)
{
	send_processes(s);
	send_events(s);
	send_rollups(s);
	send_regions(s);
}

static int setup(void **state)
{
	return fixture__one_job(state, CASES - 1, fill);
}

static void advice_follows_the_rules(void **state)
{
	struct answer r = answer_ask("input-wait", NULL, NULL, NULL);

	(void)state;
	for (unsigned i = 0; i < CASES; i++) {
		assert_true(answer_next(&r));
		if (cases[i].no_rank)
			answer_text(&r, "rank", "");
		else
			answer_near(&r, "rank", i);
		answer_near(&r, "wait_percent", cases[i].wait_ms);
		answer_near(&r, "workers", cases[i].workers);
		answer_text(&r, "advice", cases[i].advice);
		if (strstr(cases[i].advice, "mapped files") != NULL)
			assert_null(strstr(answer_cell(&r, "why"), "the cause is not reads"));
		if (cases[i].core_ms > 0)
			answer_near(&r, "core_wait_percent",
				    100.0 * cases[i].core_ms / cases[i].fetch_ms);
		else
			answer_text(&r, "core_wait_percent", "");
		if (cases[i].cpu_ms > 0) {
			answer_near(&r, "fetch_cpu_percent",
				    100.0 * cases[i].cpu_ms / cases[i].fetch_ms);
			answer_near(&r, "major_faults", (double)cases[i].workers * cases[i].faults);
		} else {
			answer_text(&r, "fetch_cpu_percent", "");
			answer_text(&r, "major_faults", "");
		}
		if (strstr(answer_cell(&r, "why"), cases[i].why) == NULL)
			fail_msg("rank %u: %s", i, answer_cell(&r, "why"));
	}
	assert_false(answer_next(&r));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(advice_follows_the_rules),
	};

	return cmocka_run_group_tests(tests, setup, fixture_teardown);
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_findings.c - the first finding of jobs whose every operation is known
 *
 * A job has two workers, which make batches of one sample each. A sample opens a file, reads it, and
 * computes or sleeps. Each test changes one thing, which the first finding must name. The last test
 * compares all texts and numbers of these jobs with tests/query/findings.txt. To accept what the
 * program prints now: query_findings_test print > tests/query/findings.txt
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "tests/query/fixture_frames.h"
#include "tests/query/train_answer.h"

#define US	  UINT64_C(1000)
#define MS	  UINT64_C(1000000)
#define WORKERS	  2u
#define PREFETCH  2u
#define BATCHES	  40u
#define FILES_MAX 80u
#define OPS_MAX	  20000u
#define LOOP_NS	  (500 * MS) /* when the first loop begins */
#define STEP_NS	  (2 * MS)

enum { TRAINS = 1, WORKER };

/* What a sample does. */
struct sample {
	unsigned opens, examinations, reads; /* numbers; reads: of each open */
	uint64_t open_ns, examine_ns, read_ns;
	uint64_t read_bytes;
	uint64_t cpu_ns, sleep_ns, lock_ns, network_ns, core_ns, fault_ns;
};

/* What the training thread does besides. */
enum extra {
	NO_EXTRA,
	LISTS,	    /* examines files before the first loop */
	READS,	    /* in each step */
	SYNCS,	    /* in each step */
	COMPUTES,   /* in each step, besides backward() */
	VALIDATES,  /* in the later passes, instead of training */
	RESTORES,   /* before the first loop */
	CHECKPOINTS /* after each pass */
};

/* Decides what sample `i` of pass `pass` does, and which file of `files` it uses. */
static struct {
	unsigned files, passes;
	struct sample (*sample)(unsigned pass, unsigned i, unsigned worker, unsigned *file);
	bool (*on_scratch)(unsigned file); /* else on /data */
	bool serial;			   /* the storage serves one read at a time */
	bool killed;			   /* at its end */
	bool linked;			   /* the paths are links into another mount */
	bool hidden;			   /* an accelerator hides the waits */
	unsigned busy;	  /* for this share (in percent) of the time it is busy; 0: not known */
	uint64_t step_ns; /* the training thread takes so long for a batch */
	unsigned cpus, quota_milli;
	uint64_t start_ns;    /* of the workers, in each pass */
	uint64_t handover_ns; /* of a batch */
	unsigned others;      /* cores that other threads of the training process use */
	enum extra extra;
	const char *says; /* what the text of the diagnosis contains; NULL: not examined */
} plan;

static FILE *printed; /* what the queries answer about each job */

static struct hr_regions *regions;
static struct hr_event ops[OPS_MAX];
static size_t n_ops;
static uint64_t served[OPS_MAX]; /* with plan.serial: when reads began to be served, by time */
static size_t n_served;

/* ---- operations and regions ---- */

static void op(unsigned worker, uint16_t what, unsigned file, uint64_t *at, uint64_t ns,
	       int64_t offset, int64_t ret)
{
	assert_true(n_ops < OPS_MAX);
	ops[n_ops++] = (struct hr_event){
	    .start_ns = FIX_BOOT_NS + *at,
	    .dur_ns = ns,
	    .task = worker,
	    .op = what,
	    .file = file + 1,
	    .fd = 5,
	    .offset = offset,
	    .asked = what == HR_OP_read || what == HR_OP_mmap ? 1u << 20 : HR_ASKED_NONE,
	    .ret = ret};
	*at += ns + 1000;
}

/* When the storage has served a read that begins at `at`: in the first gap that is long enough. */
static uint64_t serve(uint64_t at, uint64_t ns)
{
	size_t i = 0;

	for (; plan.serial && i < n_served && served[i] < at + ns; i++)
		at = served[i] + ns > at ? served[i] + ns : at;
	memmove(&served[i + 1], &served[i], (n_served - i) * sizeof(*served));
	served[i] = at;
	n_served++;
	return at + ns;
}

/* The operations of a sample that begins at `at`; returns when it ends. */
static uint64_t make_sample(unsigned worker, unsigned file, const struct sample *s, uint64_t at)
{
	for (unsigned i = 0; i < s->examinations; i++)
		op(worker, HR_OP_stat, file, &at, s->examine_ns, HR_OFFSET_NONE, 0);
	for (unsigned i = 0; i < s->opens; i++) {
		op(worker, HR_OP_open64, file, &at, s->open_ns, HR_OFFSET_NONE, 5);
		for (unsigned k = 0; k < s->reads; k++) {
			uint64_t done = serve(at, s->read_ns);

			op(worker, HR_OP_read, file, &at, done - at, (int64_t)(k * s->read_bytes),
			   (int64_t)s->read_bytes);
		}
		op(worker, HR_OP_close, file, &at, 2 * US, HR_OFFSET_NONE, 0);
	}
	if (s->fault_ns > 0)
		op(worker, HR_OP_mmap, file, &at, US, 0, 1 << 20);
	return at + s->cpu_ns + s->sleep_ns + s->lock_ns + s->network_ns + s->core_ns + s->fault_ns;
}

static void region(uint64_t proc, uint32_t kind, uint64_t from, uint64_t to, const char *args)
{
	struct hr_region g = {.proc = proc,
			      .tid = (uint32_t)proc,
			      .kind = kind,
			      .count = 1,
			      .start_ns = FIX_BOOT_NS + from,
			      .dur_ns = to - from,
			      .step = kind == HR_REGION_STEP ? from : HR_REGION_UNKNOWN,
			      .epoch = HR_REGION_UNKNOWN,
			      .open = args == NULL && kind != HR_REGION_OPTIMIZER};

	if (args != NULL)
		assert_int_equal(hr_regions_text(regions, args, strlen(args), &g.args), 0);
	assert_int_equal(hr_regions_add(regions, &g), 0);
}

/* A range of the training thread; `domain` is NULL: none. */
static void range(const char *domain, const char *name, uint64_t from, uint64_t to)
{
	struct hr_region g = {.proc = TRAINS,
			      .tid = TRAINS,
			      .kind = HR_REGION_RANGE,
			      .count = 1,
			      .start_ns = FIX_BOOT_NS + from,
			      .dur_ns = to - from,
			      .step = HR_REGION_UNKNOWN,
			      .epoch = HR_REGION_UNKNOWN};

	if (domain != NULL)
		assert_int_equal(hr_regions_text(regions, domain, strlen(domain), &g.domain), 0);
	assert_int_equal(hr_regions_text(regions, name, strlen(name), &g.name), 0);
	assert_int_equal(hr_regions_add(regions, &g), 0);
}

/* What the training thread does in a step that begins at `at`. */
static void make_extra(unsigned file, uint64_t at)
{
	uint64_t t = at + 100 * US;

	if (plan.extra == READS)
		op(WORKERS, HR_OP_read, file, &t, 15 * MS, 0, 1 << 20);
	if (plan.extra == SYNCS)
		op(WORKERS, HR_OP_fsync, file, &t, 15 * MS, HR_OFFSET_NONE, 0);
	if (plan.extra == COMPUTES)
		range("torch", "backward", at, at + MS);
}

/* What it does between two passes. Returns when it ends. */
static uint64_t make_pause(uint64_t at)
{
	if (plan.extra != CHECKPOINTS)
		return at;
	region(TRAINS, HR_REGION_CHECKPOINT, at, at + 400 * MS, "{\"path\":\"/scratch/save.pt\"}");
	return at + 400 * MS;
}

/* NVML's answer at the end of a step, of the time since the one before. */
static void busy_mark(uint64_t since, uint64_t at)
{
	struct hr_region g = {.proc = TRAINS,
			      .tid = TRAINS,
			      .kind = HR_REGION_MARK,
			      .count = 1,
			      .start_ns = FIX_BOOT_NS + at,
			      .step = HR_REGION_UNKNOWN,
			      .epoch = HR_REGION_UNKNOWN};
	char args[64];

	snprintf(args, sizeof(args), "{\"busy_percent\":%u,\"since_ns\":%llu}", plan.busy,
		 (unsigned long long)(at - since));
	assert_int_equal(hr_regions_text(regions, args, strlen(args), &g.args), 0);
	assert_int_equal(hr_regions_text(regions, "headrace", 8, &g.domain), 0);
	assert_int_equal(hr_regions_text(regions, "accelerator", 11, &g.name), 0);
	assert_int_equal(hr_regions_add(regions, &g), 0);
}

/* One pass as torch does it, from `at` on; returns its end. */
static uint64_t make_pass(unsigned pass, uint64_t at)
{
	uint64_t idle[WORKERS], received[BATCHES], created = at + plan.start_ns, marked = at;
	unsigned loader = plan.extra == VALIDATES && pass > 0;
	char args[320];

	if (plan.start_ns > 0)
		range(NULL, "DataLoader.__iter__", at, created);
	at = idle[0] = idle[1] = created;

	for (unsigned i = 0; i < BATCHES; i++) {
		unsigned worker = i % WORKERS, ahead = WORKERS * PREFETCH, file = i % plan.files;
		struct sample s = plan.sample(pass, i, worker, &file);
		uint64_t asked = i < ahead ? created : received[i - ahead];
		uint64_t from = asked > idle[worker] ? asked : idle[worker];

		idle[worker] = make_sample(worker, file, &s, from);
		snprintf(
		    args, sizeof(args),
		    "{\"loader\":%u,\"worker\":%u,\"batch\":%u,\"cpu_ns\":%llu,\"sleep_ns\":%llu,"
		    "\"network_ns\":%llu,\"lock_ns\":%llu,\"core_wait_ns\":%llu,\"major_faults\":%"
		    "u}",
		    loader, worker, i, (unsigned long long)s.cpu_ns, (unsigned long long)s.sleep_ns,
		    (unsigned long long)s.network_ns, (unsigned long long)s.lock_ns,
		    (unsigned long long)s.core_ns, (unsigned)(s.fault_ns / (5 * MS)));
		region(WORKER + worker, HR_REGION_FETCH, from, idle[worker], args);
		received[i] = (idle[worker] > at ? idle[worker] : at) + plan.handover_ns;
		snprintf(
		    args, sizeof(args),
		    "{\"loader\":%u,\"workers\":%u,\"prefetch\":%u,\"batch_size\":1,\"batch\":%"
		    "u,\"before_ns\":%llu,\"before_cpu_ns\":%llu,\"others_cpu_ns\":%llu%s}",
		    loader, WORKERS, PREFETCH, i, (unsigned long long)plan.step_ns,
		    (unsigned long long)plan.step_ns,
		    (unsigned long long)plan.others * plan.step_ns,
		    plan.hidden ? ",\"hidden\":true" : "");
		region(TRAINS, HR_REGION_INPUT_WAIT, at, received[i], args);
		make_extra(file, received[i]);
		at = received[i] + plan.step_ns;
		if (loader == 0)
			region(TRAINS, HR_REGION_OPTIMIZER, at - 100 * US, at, NULL);
		if (plan.busy > 0 && i % 4 == 3) {
			busy_mark(marked, at);
			marked = at;
		}
	}
	return at;
}

/* Steps without a loader: each computes for 5 ms, and waits for pages for the rest. */
static uint64_t make_steps(uint64_t at)
{
	for (unsigned i = 0; i < BATCHES; i++, at += 20 * MS) {
		region(TRAINS, HR_REGION_STEP, at, at + 20 * MS, "{}");
		region(TRAINS, HR_REGION_OPTIMIZER, at + 19 * MS, at + 20 * MS,
		       "{\"since_ns\":20000000,\"cpu_ns\":5000000,\"major_faults\":3}");
	}
	return at;
}

/* ---- the store ---- */

static void send_processes(struct fixture__stream *s, uint64_t end)
{
	Headrace__Process rows[1 + WORKERS], *list[1 + WORKERS];
	Headrace__Processes processes = HEADRACE__PROCESSES__INIT;
	Headrace__Frame frame = HEADRACE__FRAME__INIT;

	for (unsigned i = 0; i < 1 + WORKERS; i++) {
		headrace__process__init(&rows[i]);
		rows[i].proc = TRAINS + i;
		rows[i].pid = (int32_t)i + 1;
		rows[i].cpus = plan.cpus;
		rows[i].cpu_quota_milli = plan.quota_milli;
		rows[i].start_ns = FIX_BOOT_NS;
		rows[i].end_ns = FIX_BOOT_NS + end;
		rows[i].parent_proc = i > 0 ? TRAINS : 0;
		rows[i].worker_plus1 = i;
		list[i] = &rows[i];
	}
	processes.n_rows = 1 + WORKERS;
	processes.rows = list;
	frame.body_case = HEADRACE__FRAME__BODY_PROCESSES;
	frame.processes = &processes;
	fixture__send(s, &frame);
}

static void send_files(struct fixture__stream *s)
{
	Headrace__Path rows[FILES_MAX], *list[FILES_MAX];
	Headrace__Mount mounts[2], *mount_list[2] = {&mounts[0], &mounts[1]};
	Headrace__Paths paths = HEADRACE__PATHS__INIT;
	Headrace__Frame frame = HEADRACE__FRAME__INIT;
	char names[FILES_MAX][64];

	for (unsigned i = 0; i < plan.files; i++) {
		bool scratch = plan.on_scratch != NULL && plan.on_scratch(i);
		const char *root = scratch ? "/scratch" : "/data";

		snprintf(names[i], sizeof(names[i]), "%s/set/f%02u", plan.linked ? "/links" : root,
			 i);
		headrace__path__init(&rows[i]);
		rows[i].id = i + 1;
		rows[i].hash = 1000 + i;
		rows[i].path = (ProtobufCBinaryData){strlen(names[i]), (uint8_t *)names[i]};
		rows[i].mount = scratch ? 2 : 1;
		list[i] = &rows[i];
	}
	for (unsigned i = 0; i < 2; i++) {
		headrace__mount__init(&mounts[i]);
		mounts[i].id = i + 1;
		mounts[i].fs_type = "nfs4";
	}
	mounts[0].path = FIX_BYTES("/data");
	mounts[1].path = FIX_BYTES("/scratch");
	paths.n_rows = plan.files;
	paths.rows = list;
	paths.n_mounts = 2;
	paths.mounts = mount_list;
	frame.body_case = HEADRACE__FRAME__BODY_PATHS;
	frame.paths = &paths;
	fixture__send(s, &frame);
}

static int by_end(const void *a, const void *b)
{
	const struct hr_event *x = a, *y = b;
	uint64_t ends[] = {x->start_ns + x->dur_ns, y->start_ns + y->dur_ns};

	return (ends[0] > ends[1]) - (ends[0] < ends[1]);
}

static void fill(struct fixture__stream *s)
{
	static const struct hr_task tasks[] = {
	    {WORKER, WORKER}, {WORKER + 1, WORKER + 1}, {TRAINS, TRAINS}};
	uint64_t at = LOOP_NS;

	n_ops = 0;
	n_served = 0;
	assert_int_equal(hr_regions_new(&regions), 0);
	if (plan.extra == LISTS) {
		uint64_t t = MS;

		for (unsigned i = 0; i < 40; i++)
			op(WORKERS, HR_OP_stat, i, &t, 10 * MS, HR_OFFSET_NONE, 0);
	}
	if (plan.extra == RESTORES)
		region(TRAINS, HR_REGION_RESTORE, MS, 401 * MS, "{}");
	for (unsigned pass = 0; pass < plan.passes; pass++)
		at = make_pause(make_pass(pass, at)) + MS;
	if (plan.passes == 0)
		at = make_steps(at);
	if (plan.killed) { /* while both wait; their open regions have no args */
		region(WORKER, HR_REGION_FETCH, at, at + MS, NULL);
		region(TRAINS, HR_REGION_INPUT_WAIT, at, at + MS, NULL);
	}
	send_processes(s, at);
	send_files(s);
	qsort(ops, n_ops, sizeof(*ops), by_end);
	if (n_ops > 0)
		fixture__send_events(s, ops, n_ops, tasks, WORKERS + 1);
	fixture__send_regions(s, regions);
}

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

	fprintf(printed, "== %.*s\n", (int)strcspn(finding, "\n"), finding);
	for (size_t i = 0; i < sizeof(queries) / sizeof(queries[0]); i++)
		fixture_print(&fix, printed, queries[i][0], queries[i][1], queries[i][2], 9);
}

static void usual_plan(void)
{
	plan.busy = plan.quota_milli = plan.others = 0;
	plan.step_ns = STEP_NS;
	plan.cpus = 8;
	plan.start_ns = 0;
	plan.handover_ns = 100 * US;
	plan.extra = NO_EXTRA;
}

/* Makes the job, and compares its first finding: cause, object, mount and worker, separated by commas. */
static void expect(struct sample (*sample)(unsigned, unsigned, unsigned, unsigned *),
		   unsigned files, unsigned passes, const char *finding)
{
	void *state = NULL;

	plan.sample = sample;
	plan.files = files;
	plan.passes = passes;
	assert_int_equal(fixture__one_job(&state, 0, fill), 0);
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
	if (plan.says != NULL) {
		char *text = fixture_named(&fix, "diagnosis", NULL, NULL, NULL);

		if (strstr(text, plan.says) == NULL)
			fail_msg("no \"%s\" in:\n%s", plan.says, text);
		free(text);
		plan.says = NULL;
	}
	print_job(finding);
	assert_int_equal(fixture_teardown(&state), 0);
	plan.on_scratch = NULL;
	plan.serial = plan.hidden = plan.killed = plan.linked = false;
	usual_plan();
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

static struct sample one_worker(unsigned pass, unsigned i, unsigned worker, unsigned *file)
{
	struct sample s = quick_sample(pass, i, worker, file);

	s.sleep_ns = worker == 1 ? 60 * MS : 0;
	return s;
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

static struct sample computes(unsigned pass, unsigned i, unsigned worker, unsigned *file)
{
	struct sample s = quick_sample(pass, i, worker, file);

	s.cpu_ns = 20 * MS;
	return s;
}

static void files_and_mounts(void **state)
{
	(void)state;
	usual_plan();
	expect(quick_sample, 40, 2, "nothing,,,\n");
	expect(latency, 40, 2, "slow_reads,/data/set/,/data,\n");
	plan.linked = true;
	expect(latency, 40, 2, "slow_reads,/links/set/,/data,\n");
	expect(crowded, 40, 3, "slow_reads,/data/set/,/data,\n");
	plan.serial = true;
	expect(crowded, 40, 3, "saturated,/data/set/,/data,\n");
	plan.says = "an operation on this file takes 200 ms";
	expect(one_file, 40, 2, "slow_file,/data/set/f07,/data,\n");
	plan.on_scratch = is_odd;
	expect(one_mount, 40, 2, "slow_mount,/scratch/set/,/scratch,\n");
	expect(cold, 40, 3, "cold_cache,/data/set/,/data,\n");
}

static void ways_to_read(void **state)
{
	(void)state;
	expect(again, 2, 2, "rereads,/data/set/,/data,\n");
	expect(reopened, 40, 2, "reopens,/data/set/,/data,\n");
	plan.says = "to open one takes 12.0 ms, to read it 5.00 ms";
	expect(small_file, 80, 2, "small_files,/data/set/,/data,\n");
	expect(examined, 40, 2, "metadata,/data/set/,/data,\n");
	expect(small_reads, 40, 2, "small_reads,/data/set/,/data,\n");
}

static void workers(void **state)
{
	(void)state;
	plan.says = "where:   worker 1 of 2, counted from 0: __getitem__";
	expect(one_worker, 40, 2, "slow_worker,,,1\n");
	plan.step_ns = 8 * MS;
	plan.says = "for these, the worker mostly sleeps";
	expect(uneven, 40, 2, "prefetch,,,\n");
	plan.says =
	    "do:      remove the sleep (time.sleep, a retry, a rate limit), or if it must stay";
	expect(sleeps, 40, 2, "sleep,,,\n");
	plan.says = "probably, the worker that holds the lock sleeps";
	expect(locked, 40, 2, "lock,,,\n");
	plan.says = "the worker that made the batch waited for the network for 99 % of the lost";
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
	plan.says = "the accelerator still worked, so they cost no time";
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
	(void)state;
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

static void the_training_thread(void **state)
{
	(void)state;
	plan.start_ns = 300 * MS;
	expect(quick_sample, 40, 2, "worker_start,,,\n");
	plan.start_ns = 300 * MS;
	expect(quick_sample, 40, 1, "worker_start,,,\n");
	plan.handover_ns = 20 * MS;
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
	plan.extra = VALIDATES;
	expect(quick_sample, 40, 4, "validation,,,\n");
	plan.extra = RESTORES;
	expect(quick_sample, 40, 2, "restore,,,\n");
	plan.extra = CHECKPOINTS;
	expect(quick_sample, 40, 2, "checkpoint,/scratch/save.pt,,\n");
}

static void steps_without_a_loader(void **state)
{
	(void)state;
	expect(quick_sample, 1, 0, "own_mapped_files,,,\n");
}

static char *text;

static void all_texts_and_numbers(void **state)
{
	(void)state;
	fflush(printed);
	fixture_same(HR_FINDINGS, text);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(files_and_mounts),
	    cmocka_unit_test(ways_to_read),
	    cmocka_unit_test(workers),
	    cmocka_unit_test(cores),
	    cmocka_unit_test(the_training_thread),
	    cmocka_unit_test(steps_without_a_loader),
	    cmocka_unit_test(all_texts_and_numbers),
	};
	size_t bytes;
	int failed;

	(void)argv;
	printed = open_memstream(&text, &bytes);
	failed = cmocka_run_group_tests(tests, NULL, NULL);
	fclose(printed);
	if (argc > 1)
		fputs(text, stdout);
	free(text);
	return failed;
}

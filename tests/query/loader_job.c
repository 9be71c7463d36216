/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/query/loader_job.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/unit.h"

#define WORKERS	  2u
#define PREFETCH  2u
#define OPS_MAX	  20000u
#define FILES_MAX 80u
#define STEP_NS	  (2 * MS)
#define LOOP_NS	  (500 * MS) /* when the first loop begins */

enum { TRAINS = 1, WORKER };

struct loader_job plan;

#define PYTHON_MOUNT 5u

static struct build *stream;
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
	build_region(stream,
		     (struct hr_region){.proc = proc,
					.tid = (uint32_t)proc,
					.kind = kind,
					.start_ns = FIX_BOOT_NS + from,
					.dur_ns = to - from,
					.step = kind == HR_REGION_STEP ? from : HR_REGION_UNKNOWN,
					.epoch = HR_REGION_UNKNOWN,
					.open = args == NULL && kind != HR_REGION_OPTIMIZER},
		     (struct build_texts){.args = args});
}

/* A range or a mark of the training thread. */
static void named_region(uint32_t kind, uint64_t from, uint64_t to, struct build_texts texts)
{
	build_region(stream,
		     (struct hr_region){.proc = TRAINS,
					.tid = TRAINS,
					.kind = kind,
					.start_ns = FIX_BOOT_NS + from,
					.dur_ns = to - from,
					.step = HR_REGION_UNKNOWN,
					.epoch = HR_REGION_UNKNOWN},
		     texts);
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
		named_region(HR_REGION_RANGE, at, at + MS,
			     (struct build_texts){.domain = "torch", .name = "backward"});
}

/* backward() of a batch, from `at` on. */
static void make_backward(uint64_t at)
{
	char args[40];

	if (plan.backward_ns == 0)
		return;
	snprintf(args, sizeof(args), "{\"cpu_ns\":%llu}", (unsigned long long)plan.backward_cpu_ns);
	named_region(HR_REGION_RANGE, at, at + plan.backward_ns,
		     (struct build_texts){.domain = "torch", .args = args, .name = "backward"});
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
	char args[64];

	snprintf(args, sizeof(args), "{\"busy_percent\":%u,\"since_ns\":%llu}", plan.busy,
		 (unsigned long long)(at - since));
	named_region(
	    HR_REGION_MARK, at, at,
	    (struct build_texts){.domain = "headrace", .args = args, .name = "accelerator"});
}

/*
 * Samples of the step that ends at this moment: one in a line of the program, and others that do
 * not count, because the thread is in the model or in the optimizer.
 */
static void samples_mark(uint64_t at)
{
	char args[500], compiler[40] = "";

	if (plan.compiler != NULL)
		snprintf(compiler, sizeof(compiler), ",\"compiler\":\"%s\"", plan.compiler);
	snprintf(args, sizeof(args),
		 "{\"every_ns\":%llu,\"stacks\":["
		 "{\"line\":\"log.py:7 write\",\"stack\":\"lib/csv.py:9 row < log.py:7 "
		 "write\"%s,\"ago_ns\":[1000000]},"
		 "{\"line\":\"net.py:3 "
		 "forward\",\"stack\":\"\",\"model\":true,\"ago_ns\":[500000,600000]},"
		 "{\"line\":\"sgd.py:2 step\",\"stack\":\"\",\"ago_ns\":[10000,20000,30000]}]}",
		 (unsigned long long)plan.own_ns, compiler);
	named_region(HR_REGION_MARK, at, at,
		     (struct build_texts){.domain = "headrace", .args = args, .name = "samples"});
}

/* Returns the member `stacks` of a fetch of this duration. */
static const char *stacks_of(uint64_t ns)
{
	static char text[600];
	static unsigned fetches;
	size_t n = 0;

	text[0] = '\0';
	for (unsigned i = 0; fetches % (plan.unsampled + 1) == 0 && i < plan.lines; i++)
		n += (size_t)snprintf(text + n, sizeof(text) - n,
				      "%s{\"from_ns\":%llu,\"line\":\"data.py:%u "
				      "load\",\"stack\":\"\"}",
				      i == 0 ? ",\"stacks\":[" : ",",
				      (unsigned long long)(ns * i / plan.lines), i + 1);
	if (n > 0)
		snprintf(text + n, sizeof(text) - n, "]");
	fetches++;
	return text;
}

static const char *cpu_of_wait(void)
{
	static char text[40];

	snprintf(text, sizeof(text), plan.wait_cpu_ns > 0 ? ",\"cpu_ns\":%llu" : "",
		 (unsigned long long)plan.wait_cpu_ns);
	return text;
}

/* One pass as torch does it, from `at` on; returns its end. */
static uint64_t make_pass(unsigned pass, uint64_t at)
{
	uint64_t idle[WORKERS], received[BATCHES], created = at + plan.start_ns, marked = at;
	unsigned loader = plan.extra == VALIDATES && pass > 0;
	char args[1000];

	if (plan.start_ns > 0)
		named_region(
		    HR_REGION_RANGE, at, created,
		    (struct build_texts){.name = "DataLoader.__iter__", .args = plan.made});
	at = idle[0] = created;
	idle[1] = created + plan.late_ns;

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
		    "u%s}",
		    loader, worker, i, (unsigned long long)s.cpu_ns, (unsigned long long)s.sleep_ns,
		    (unsigned long long)s.network_ns, (unsigned long long)s.lock_ns,
		    (unsigned long long)s.core_ns, (unsigned)(s.fault_ns / (5 * MS)),
		    stacks_of(idle[worker] - from));
		region(WORKER + worker, HR_REGION_FETCH, from, idle[worker], args);
		received[i] = (idle[worker] > at ? idle[worker] : at) + plan.handover_ns;
		snprintf(
		    args, sizeof(args),
		    "{\"loader\":%u,\"workers\":%u,\"prefetch\":%u,\"batch_size\":1,\"batch\":%"
		    "u,\"before_ns\":%llu,\"before_cpu_ns\":%llu,\"before_core_ns\":%llu,\"others_"
		    "cpu_ns\":%llu%s%s%s}",
		    loader, WORKERS, PREFETCH, i, (unsigned long long)plan.step_ns,
		    (unsigned long long)(plan.step_ns - plan.no_core_ns),
		    (unsigned long long)plan.no_core_ns,
		    (unsigned long long)plan.others * plan.step_ns,
		    plan.hidden ? ",\"hidden\":true" : "",
		    plan.iterable ? ",\"iterable\":true" : "", cpu_of_wait());
		region(TRAINS, HR_REGION_INPUT_WAIT, at, received[i], args);
		make_extra(file, received[i]);
		make_backward(received[i]);
		at = received[i] + plan.step_ns;
		if (loader == 0 && (i + 1) % plan.accumulates == 0)
			region(TRAINS, HR_REGION_OPTIMIZER, at - plan.optimizer_ns, at, NULL);
		if (plan.own_ns > 0)
			samples_mark(at);
		if (plan.busy > 0 && i % 4 == 3) {
			busy_mark(marked, at);
			marked = at;
		}
	}
	return at;
}

static void add_mark(uint64_t proc, uint64_t at, const char *name, const char *args)
{
	build_region(stream,
		     (struct hr_region){.proc = proc,
					.tid = 77, /* not the thread that hangs */
					.kind = HR_REGION_MARK,
					.start_ns = FIX_BOOT_NS + at,
					.step = HR_REGION_UNKNOWN,
					.epoch = HR_REGION_UNKNOWN},
		     (struct build_texts){.domain = "headrace", .args = args, .name = name});
}

/* Returns the end of the hang that begins at `at`. */
static uint64_t make_hang(uint64_t at)
{
	uint64_t end = at + 5000 * MS;

	if (plan.worker_hang != NULL) {
		add_mark(WORKER, at + 4000 * MS, "hang", plan.worker_hang);
		region(WORKER, HR_REGION_FETCH, at, end, NULL);
		region(TRAINS, HR_REGION_INPUT_WAIT, at, end, NULL);
	}
	if (plan.trains_hang == NULL)
		return at;
	add_mark(TRAINS, at + 4000 * MS, "hang", plan.trains_hang);
	if (plan.recovers)
		region(TRAINS, HR_REGION_OPTIMIZER, end - MS, end, NULL);
	return end;
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
	Headrace__Process rows[1 + WORKERS];

	for (unsigned i = 0; i < 1 + WORKERS; i++)
		rows[i] = (Headrace__Process){.proc = TRAINS + i,
					      .pid = (int32_t)i + 1,
					      .cpus = plan.cpus,
					      .cpu_quota_milli = plan.quota_milli,
					      .start_ns = FIX_BOOT_NS,
					      .end_ns = FIX_BOOT_NS + end,
					      .exit = plan.exit != NULL ? (char *)plan.exit : "",
					      .parent_proc = i > 0 ? TRAINS : 0,
					      .worker_plus1 = i,
					      .loader_worker_plus1 = i};
	if (plan.worker_exit != NULL) {
		rows[2].exit = (char *)plan.worker_exit;
		rows[2].end_ns = FIX_BOOT_NS + end / 2;
	}
	build_processes(&s->b, rows, 1 + WORKERS);
}

/* Nodes number the same mounts differently. */
static uint32_t mount_id(const struct fixture__stream *s, bool scratch)
{
	return scratch == (s->node == 0) ? 4 : 3;
}

static void send_files(struct fixture__stream *s)
{
	Headrace__Path rows[FILES_MAX + 1];
	Headrace__Mount mounts[] = {
	    {.id = mount_id(s, false), .path = BUILD_BYTES("/data"), .fs_type = "nfs4"},
	    {.id = mount_id(s, true), .path = BUILD_BYTES("/scratch"), .fs_type = "nfs4"},
	    {.id = PYTHON_MOUNT,
	     .path = BUILD_BYTES("/usr"),
	     .fs_type = plan.python != NULL ? (char *)plan.python : "ext4"},
	};
	char names[FILES_MAX][64];

	for (unsigned i = 0; i < plan.files; i++) {
		bool scratch = plan.on_scratch != NULL && plan.on_scratch(i);
		const char *root = scratch ? "/scratch" : "/data";

		snprintf(names[i], sizeof(names[i]), "%s/set/f%02u", plan.linked ? "/links" : root,
			 i);
		rows[i] = (Headrace__Path){.id = i + 1,
					   .hash = 1000 + i,
					   .path = build_bytes(names[i]),
					   .mount = mount_id(s, scratch)};
	}
	rows[plan.files] = (Headrace__Path){.id = plan.files + 1,
					    .hash = 999,
					    .path = BUILD_BYTES("/usr/lib/python3/torch.py"),
					    .mount = PYTHON_MOUNT,
					    .scope = 1};
	build_paths(&s->b, rows, plan.files + (plan.python != NULL), mounts, 3);
}

void loader_job_fill(struct fixture__stream *s)
{
	static const struct hr_task tasks[] = {
	    {WORKER, WORKER}, {WORKER + 1, WORKER + 1}, {TRAINS, TRAINS}};
	uint64_t at = LOOP_NS;

	n_ops = 0;
	n_served = 0;
	stream = &s->b;
	if (plan.extra == LISTS) {
		uint64_t t = MS;

		for (unsigned i = 0; i < 40; i++)
			op(WORKERS, HR_OP_stat, i, &t, 10 * MS, HR_OFFSET_NONE, 0);
	}
	if (plan.python != NULL) {
		uint64_t t = MS;

		op(WORKERS, HR_OP_read, plan.files, &t, 400 * MS, 0, 1 << 20);
		ops[n_ops - 1].bits = HR_EV_SCOPE_RUNTIME;
	}
	if (plan.extra == RESTORES)
		region(TRAINS, HR_REGION_RESTORE, MS, 401 * MS, "{\"path\":\"/scratch/save.pt\"}");
	for (unsigned pass = 0; pass < plan.passes; pass++)
		at = make_pause(make_pass(pass, at)) + MS;
	if (plan.passes == 0)
		at = make_steps(at);
	if (plan.epoch)
		region(TRAINS, HR_REGION_EPOCH, LOOP_NS, at, "{}");
	if (plan.killed) { /* while both wait; their open regions have no args */
		region(WORKER, HR_REGION_FETCH, at, at + MS, NULL);
		region(TRAINS, HR_REGION_INPUT_WAIT, at, at + MS, NULL);
	}
	at = make_hang(at);
	if (plan.updates != NULL)
		add_mark(TRAINS, LOOP_NS + MS, "optimizer", plan.updates);
	if (plan.padding != NULL)
		add_mark(TRAINS, LOOP_NS + MS, "padding", plan.padding);
	if (plan.raises != NULL)
		add_mark(WORKER, at - MS, "exception", plan.raises);
	send_processes(s, at);
	send_files(s);
	qsort(ops, n_ops, sizeof(*ops), build_by_end);
	if (n_ops > 0)
		build_events(&s->b, ops, n_ops, tasks, WORKERS + 1);
	build_regions(&s->b);
}

void loader_job_usual(void)
{
	plan = (struct loader_job){.files = plan.files,
				   .passes = plan.passes,
				   .sample = plan.sample,
				   .nodes = 1,
				   .step_ns = STEP_NS,
				   .cpus = 8,
				   .handover_ns = 100 * US,
				   .accumulates = 1,
				   .optimizer_ns = 100 * US,
				   .extra = NO_EXTRA};
}

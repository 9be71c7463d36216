/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/query/wide_store.h"

#include <stdlib.h>
#include <string.h>

#include "common/cause.h"
#include "common/ops.h"
#include "common/rollup.h"
#include "tests/query/fixture_frames.h"
#include "tests/unit.h"

#define MS     UINT64_C(1000000)
#define FILES  24u
#define ROUNDS 3u /* events of each operation */
#define EVENTS 2000u

enum {
	LAUNCHER = 1,
	RANK_A,
	LOADS_A,
	VALIDATES_A,
	RANK_B,
	LOADS_B,
	BEFORE_EXEC,
	NOT_CHOSEN,
	PROCS,
	NOT_KNOWN
};

/* Tasks of events: threads of processes that do I/O. The frame that describes NOT_KNOWN was lost. */
static const struct hr_task tasks[] = {{RANK_A, 21},	  {RANK_A, 22},	  {LOADS_A, 31},
				       {VALIDATES_A, 41}, {RANK_B, 51},	  {LOADS_B, 61},
				       {BEFORE_EXEC, 71}, {NOT_KNOWN, 81}};
#define TASKS (sizeof(tasks) / sizeof(tasks[0]))

struct wide {
	struct fixture__stream s;
	uint64_t seed;
	struct hr_event events[EVENTS];
	size_t n;
};

static uint64_t below(struct wide *w, uint64_t n)
{
	w->seed = w->seed * UINT64_C(6364136223846793005) + 1442695040888963407u;
	return (w->seed >> 33) % n;
}

/* ---- processes and files ---- */

static void send_processes(struct wide *w)
{
	static const struct {
		uint64_t parent, exec_of;
		uint32_t rank_plus1, loader_plus1, worker_plus1;
		char *rank_source, *exit;
	} known[PROCS] = {
	    [LAUNCHER] = {.exit = "3"},
	    [RANK_A] = {LAUNCHER, BEFORE_EXEC, 1, 0, 0, "RANK", "SIGKILL"},
	    [LOADS_A] = {RANK_A, 0, 1, 1, 1, "inherited", "0"},
	    [VALIDATES_A] = {RANK_A, 0, 1, 2, 2, "inherited", ""},
	    [RANK_B] = {LAUNCHER, 0, 2, 0, 0, "SLURM_PROCID", ""},
	    [LOADS_B] = {RANK_B, 0, 2, 1, 1, "inherited", "SIGTERM"},
	    [BEFORE_EXEC] = {LAUNCHER, 0, 1, 0, 0, "RANK", "exec"},
	    [NOT_CHOSEN] = {LAUNCHER, 0, 2, 0, 0, "RANK", "0"},
	};
	Headrace__Process rows[PROCS];
	Headrace__Excluded left_out = HEADRACE__EXCLUDED__INIT, *excluded[] = {&left_out};

	for (uint32_t i = LAUNCHER; i < PROCS; i++) {
		Headrace__Process *p = &rows[i];

		*p = (Headrace__Process){
		    .proc = i,
		    .pid = (int32_t)(1000 * (w->s.node + 1) + i),
		    .parent_proc = known[i].parent,
		    .ppid = known[i].parent > 0 ? rows[known[i].parent].pid : 1,
		    .cmdline = BUILD_BYTES("python3\0train.py\0--lr\0"
					   "0.1\0"),
		    .exec_of = known[i].exec_of,
		    .start_ns = FIX_BOOT_NS + 11 * i * MS,
		    .end_ns = known[i].exit[0] != '\0' ? FIX_BOOT_NS + (40000 + 7 * i) * MS : 0,
		    .exit = known[i].exit,
		    .rank_plus1 = known[i].rank_plus1 > 0 ? known[i].rank_plus1 + 2 * w->s.node : 0,
		    .local_rank_plus1 = known[i].rank_plus1,
		    .world_size = 4,
		    .loader_plus1 = known[i].loader_plus1,
		    .loader_worker_plus1 = known[i].loader_plus1 > 0,
		    .worker_plus1 = known[i].worker_plus1,
		    .rank_source = known[i].rank_source,
		    .uid = 1000,
		    .deselected = i == NOT_CHOSEN,
		    .restart_plus1 = known[i].rank_plus1 > 0 ? 2 : 0,
		    .cpus = 4 + i % 3,
		    .first_cpu = i,
		    .cpu_quota_milli = i % 2 ? 1500 : 0};
		p->exe = i == LAUNCHER ? BUILD_BYTES("/usr/bin/torchrun")
				       : BUILD_BYTES("/usr/bin/python3");
	}
	left_out.pattern = BUILD_BYTES("/opt");
	left_out.opens = 321 + w->s.node;
	rows[LOADS_A].n_excluded = 1;
	rows[LOADS_A].excluded = excluded;
	build_processes(&w->s.b, rows + LAUNCHER, PROCS - 1);
}

/* Files of five groups; those of the last are read by Python itself. */
static const struct {
	const char *name;
	uint32_t mount, scope;
} groups[] = {{"/data/train/shard-%05u.tar", 1, 0},
	      {"/data/valid/img_%u.jpg", 1, 0},
	      {"/scratch/run7/step=%u/model.pt", 2, 0},
	      {"/dev/shm/torch_%u_x", 3, 0},
	      {"/opt/lib/python3.11/m%u.py", 0, 1}};
#define GROUPS (sizeof(groups) / sizeof(groups[0]))

static void send_paths(struct wide *w)
{
	static char *const types[] = {"lustre", "nfs4", "tmpfs"};
	static char *const roots[] = {"/data", "/scratch", "/dev/shm"};
	Headrace__Path rows[FILES];
	Headrace__Mount mounts[3];
	char names[FILES][48];

	for (unsigned i = 0; i < FILES; i++) {
		snprintf(names[i], sizeof(names[i]), groups[i % GROUPS].name, i / GROUPS * 100);
		rows[i] = (Headrace__Path){.id = i + 1,
					   .hash = 5000 + i,
					   .path = build_bytes(names[i]),
					   .mount = groups[i % GROUPS].mount,
					   .scope = groups[i % GROUPS].scope};
	}
	for (unsigned i = 0; i < 3; i++)
		mounts[i] = (Headrace__Mount){
		    .id = i + 1, .path = build_bytes(roots[i]), .fs_type = types[i]};
	build_paths(&w->s.b, rows, FILES, mounts, 3);
}

/* ---- operations and their sums ---- */

/* A time from 0 to this; C does not say in which order a sum calls below(). */
static uint64_t below_ms(struct wide *w, uint64_t n)
{
	uint64_t ms = below(w, n);

	return ms * MS + below(w, MS);
}

static int64_t moved(struct wide *w, struct hr_event *e)
{
	e->asked = 1 + below(w, 5) * 4096;
	e->asked += below(w, 3000);
	e->offset = (int64_t)below(w, 1000) * 4096;
	e->offset += (int64_t)below(w, 2);
	return (int64_t)(e->asked - below(w, 2) * (e->asked / 3));
}

static void add_event(struct wide *w, uint16_t op, unsigned round)
{
	const struct hr_op_info *info = hr_op_info(op);
	struct hr_event *e = &w->events[w->n++];

	assert_true(w->n <= EVENTS);
	*e = (struct hr_event){.op = op, .offset = HR_OFFSET_NONE, .asked = HR_ASKED_NONE};
	e->start_ns = FIX_BOOT_NS + 100 * MS + below_ms(w, 39000);
	e->dur_ns = 1 + below(w, 9);
	e->dur_ns <<= below(w, 22);
	e->task = (uint32_t)below(w, TASKS);
	e->file = 1 + (uint32_t)below(w, FILES);
	e->fd = 3 + (int32_t)below(w, 60);
	e->flags = info->bytes_rule == HR_BYTES_ITEMS ? 4 : (uint32_t)below(w, 9);
	if (info->bytes_rule != HR_BYTES_NONE)
		e->ret = moved(w, e);
	if (hr_op_copies(op) || info->class == HR_CLASS_META)
		e->file2 = 1 + (uint32_t)below(w, FILES);
	if (round == 0 && below(w, 3) == 0)
		e->ret = below(w, 5) == 0 ? HR_RET_FAILED : -(int64_t)(1 + below(w, 30));
	if (groups[(e->file - 1) % GROUPS].scope != 0)
		e->bits |= HR_EV_SCOPE_RUNTIME;
	if (below(w, 20) == 0)
		e->bits |= HR_EV_BPF;
}

static uint64_t bytes_of(const struct hr_event *e)
{
	uint64_t bytes = hr_bytes_moved(hr_op_info(e->op)->bytes_rule, e->ret, e->asked, e->flags);

	return bytes != UINT64_MAX ? bytes : 0;
}

/* One row of a roll-up for each event of a window: readers add them up. */
static void send_rollups(struct wide *w, uint64_t window)
{
	Headrace__Rollup rows[EVENTS];
	uint64_t sizes[EVENTS][2], durations[EVENTS][2];
	size_t n = 0;

	for (size_t i = 0; i < w->n; i++) {
		const struct hr_event *e = &w->events[i];
		uint64_t bytes = bytes_of(e);
		bool sized = hr_op_info(e->op)->bytes_rule != HR_BYTES_NONE;

		if ((e->start_ns + e->dur_ns) / HR_WINDOW_NS != window)
			continue;
		durations[i][0] = hr_log2_bin(e->dur_ns);
		sizes[i][0] = hr_log2_bin(bytes);
		durations[i][1] = sizes[i][1] = 1;
		rows[n++] = (Headrace__Rollup){.proc = tasks[e->task].proc,
					       .op = e->op,
					       .mount = groups[(e->file - 1) % GROUPS].mount,
					       .scope = groups[(e->file - 1) % GROUPS].scope,
					       .count = 1,
					       .bytes = bytes,
					       .errors = e->ret < 0,
					       .dur_ns = e->dur_ns,
					       .max_dur_ns = e->dur_ns,
					       .n_dur_hist = 2,
					       .dur_hist = durations[i],
					       .n_size_hist = sized ? 2 : 0,
					       .size_hist = sizes[i]};
	}
	build_rollups(&w->s.b, window * HR_WINDOW_NS, rows, n, NULL, 0);
}

static void count_in_record(Headrace__FileRecord *r, const struct hr_event *e)
{
	bool reads = hr_op_info(e->op)->class == HR_CLASS_READ;
	uint64_t *longest = reads ? &r->max_read_ns : &r->max_write_ns;

	switch (hr_op_info(e->op)->class) {
	case HR_CLASS_OPEN:
		r->opens = 1;
		r->meta_ns = e->dur_ns;
		break;
	case HR_CLASS_READ:
	case HR_CLASS_WRITE:
		*(reads ? &r->reads : &r->writes) = 1;
		*(reads ? &r->bytes_read : &r->bytes_written) = bytes_of(e);
		*(reads ? &r->read_ns : &r->write_ns) = *longest = e->dur_ns;
		*(reads ? &r->seq_reads : &r->consec_writes) = e->dur_ns % 2;
		*(reads ? &r->consec_reads : &r->seq_writes) = e->dur_ns % 3 == 0;
		r->rw_switches = e->dur_ns % 5 == 0;
		r->unaligned = e->offset % 4096 != 0;
		break;
	case HR_CLASS_SEEK:
		r->seeks = 1;
		break;
	case HR_CLASS_STAT:
		r->stats = 1;
		r->meta_ns = e->dur_ns;
		break;
	case HR_CLASS_SYNC:
		r->syncs = 1;
		break;
	default:
		r->meta_ops = 1;
		r->meta_ns = e->dur_ns;
	}
}

/* A file record for each event: readers add them up. */
static void send_records(struct wide *w)
{
	static Headrace__FileRecord rows[EVENTS];
	static uint64_t sizes[EVENTS][2];

	for (size_t i = 0; i < w->n; i++) {
		const struct hr_event *e = &w->events[i];

		rows[i] = (Headrace__FileRecord){.proc = tasks[e->task].proc,
						 .file = e->file,
						 .api = hr_op_info(e->op)->api,
						 .first_ns = e->start_ns,
						 .last_ns = e->start_ns + e->dur_ns};
		count_in_record(&rows[i], e);
		sizes[i][0] = hr_log2_bin(bytes_of(e));
		sizes[i][1] = 1;
		rows[i].n_read_size_hist = 2 * rows[i].reads;
		rows[i].read_size_hist = sizes[i];
		rows[i].n_write_size_hist = 2 * rows[i].writes;
		rows[i].write_size_hist = sizes[i];
	}
	build_file_records(&w->s.b, rows, w->n);
}

/* The operations of NOT_KNOWN, or the others. */
static void send_batch(struct wide *w, bool not_known)
{
	static struct hr_event some[EVENTS];
	size_t n = 0;

	for (size_t i = 0; i < w->n; i++)
		if ((tasks[w->events[i].task].proc == NOT_KNOWN) == not_known)
			some[n++] = w->events[i];
	build_events(&w->s.b, some, n, tasks, TASKS);
}

static void send_operations(struct wide *w)
{
	for (uint16_t op = HR_OP_FIRST; op < HR_OP_MAX; op++)
		for (unsigned round = 0; hr_op_info(op)->name != NULL && round < ROUNDS; round++)
			if (hr_op_info(op)->class != HR_CLASS_HOOK)
				add_event(w, op, round);
	qsort(w->events, w->n, sizeof(*w->events), build_by_end);
	send_batch(w, false);
	send_batch(w, true); /* a batch may be skipped if its processes do not matter */
	for (uint64_t window = 0; window < 6; window++)
		send_rollups(w, window);
	send_records(w);
}

/* ---- regions, losses, levels, kernel ---- */

static void add_region(struct wide *w, uint32_t kind, const struct hr_task *of, uint64_t start,
		       uint64_t dur)
{
	static const char *const names[] = {"forward", "torch.save", "step", "Trainer.fit"};
	static const char *const domains[] = {"torch", "keras", "", "app"};
	static const char *const categories[] = {"", "nvtx", "io"};
	const char *name = names[below(w, 4)], *domain = domains[below(w, 4)],
		   *category = categories[below(w, 3)];
	unsigned step = (unsigned)below(w, 4) * 100, n = (unsigned)below(w, 1000);
	char args[128];
	struct hr_region g = {.proc = of->proc,
			      .tid = of->tid,
			      .kind = kind,
			      .start_ns = FIX_BOOT_NS + start,
			      .dur_ns = kind == HR_REGION_MARK ? 0 : dur};

	g.depth = (uint32_t)below(w, 2);
	if (below(w, 6) == 0)
		g.count = 2 + below(w, 9);
	g.step = below(w, 4) == 0 ? HR_REGION_UNKNOWN : below(w, 50);
	g.epoch = below(w, 3) == 0 ? HR_REGION_UNKNOWN : below(w, 4);
	g.open = below(w, 15) == 0;
	snprintf(args, sizeof(args), "{\"path\":\"/scratch/run7/step=%u/model.pt\",\"n\":%u}", step,
		 n);
	build_region(&w->s.b, g, (struct build_texts){domain, category, args, name});
}

/*
 * In each thread, one kind after the other, with pauses. A step or an epoch contains the regions
 * that follow: waits, saves and other steps.
 */
static void send_regions(struct wide *w)
{
	for (unsigned t = 0; t < TASKS; t++) {
		uint64_t at = (200 + below(w, 300)) * MS;

		for (unsigned i = 0; i < 40; i++) {
			uint32_t kind = HR_REGION_RANGE + i % HR_REGION_RESTORE;
			bool holds = kind == HR_REGION_STEP || kind == HR_REGION_EPOCH;
			uint64_t dur = MS + below_ms(w, 700);

			add_region(w, kind, &tasks[t], at, holds ? 8 * dur : dur);
			at += (holds ? MS : dur) + below(w, 200 * MS);
		}
	}
	build_regions(&w->s.b);
}

static void send_losses(struct wide *w)
{
#define HR_LOSS(id, name, ...) name,
	static const char *const reasons[] = {
#include "proto/losses.def"
	};
#undef HR_LOSS
	enum { REASONS = sizeof(reasons) / sizeof(reasons[0]) };
	Headrace__LossRow rows[REASONS];

	for (size_t i = 0; i < REASONS; i++) {
		rows[i] = (Headrace__LossRow){.proc = i % PROCS,
					      .reason = (char *)(uintptr_t)reasons[i],
					      .op = i % 4 == 1 ? HR_OP_read : 0};
		rows[i].count = 1 + below(w, 1000);
		rows[i].bytes = below(w, 100000);
		rows[i].dur_ns = below(w, MS);
	}
	build_losses(&w->s.b, rows, REASONS);
}

static void send_level(struct wide *w, char *level, uint64_t from_ms, uint64_t to_ms)
{
	build_level(&w->s.b, level, FIX_BOOT_NS + from_ms * MS, FIX_BOOT_NS + to_ms * MS);
}

static void send_kernel(struct wide *w)
{
	static const uint16_t ops[] = {HR_OP_read, HR_OP_write, HR_OP_openat, HR_OP_page_cache_fill,
				       HR_OP_io_uring_read};
	enum { ROWS = 40 };
	Headrace__KernelRecord rows[ROWS];

	for (unsigned i = 0; i < ROWS; i++) {
		rows[i] = (Headrace__KernelRecord){0};
		rows[i].proc = tasks[below(w, TASKS)].proc;
		rows[i].file = (uint32_t)below(w, FILES);
		rows[i].op = ops[below(w, 5)];
		rows[i].cause = 1 + (uint32_t)below(w, HR_CAUSE_END - 1);
		rows[i].count = 1 + below(w, 100);
		rows[i].bytes = below(w, 100000);
		rows[i].errors = below(w, 3);
		rows[i].dur_ns = below(w, 9 * MS);
	}
	build_kernel_records(&w->s.b, rows, ROWS);
}

static void make_node(const char *store, unsigned node)
{
	struct wide *w = calloc(1, sizeof(*w));

	assert_non_null(w);
	w->seed = 70 + node;
	fixture__open_stream(&w->s, store, "w", node == 0 ? "n1" : "n2");
	w->s.node = node;
	w->s.late_ns = node * 700 * MS;
	fixture__send_job(&w->s, "running", 4);
	send_processes(w);
	send_paths(w);
	send_operations(w);
	send_regions(w);
	send_losses(w);
	send_level(w, "counters", 300, 900 + node);
	send_level(w, "off", 1000, 1700);
	send_kernel(w);
	fixture__send_job(&w->s, "ended", 4);
	build_end(&w->s.b, "ended");
	build_close(&w->s.b);
	free(w);
}

char *wide_make(void)
{
	char *store = fixture__make_folder();

	make_node(store, 0);
	make_node(store, 1);
	return store;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Ranks and workers: precedence, inheritance, DataLoader under fork, spawn and forkserver, mp.spawn, slots. */

#include <string.h>

#include "daemon/journal/entry.h"
#include "common/ranks.h"
#include "rig.h"
#include "tests/unit.h"

#define NONE HR_OFFSET_NONE
#define SPAWN                                                                                      \
	"python3 -c from multiprocessing.spawn import spawn_main; spawn_main() "                   \
	"--multiprocessing-fork"

static void reads(struct rig *r, uint64_t proc, bool runtime)
{
	struct hr_record rec = rig_op(r, "read", "/data/x", 5, 10, 10, NONE, 0, 10);

	rec.bits = runtime ? HR_REC_RUNTIME : 0;
	rig_records(r, proc, &rec, 1);
	rig_tick(r, r->now + 1);
}

static const Headrace__Process *row(struct rig *r, uint64_t proc)
{
	const Headrace__Process *p;

	rig_tick(r, r->now + 1);
	p = rig_process(r, proc);
	assert_non_null(p);
	return p;
}

static void env(struct rig *r, uint64_t proc, const char *text)
{
	struct hr_record s[4] = {
	    {.op = HR_CTL_ENV, .asked = strlen(text), .fd = 1, .offset = NONE}};

	assert_true(strlen(text) <= HR_TEXT_BYTES);
	memcpy(&s[1], text, strlen(text));
	rig_records(r, proc, s, 2);
}

static void precedence(void **state)
{
	struct rig r;
	uint64_t p;

	rig_init(&r);
	p = rig_attach(&r, &(struct rig_hello){.pid = 10,
					       .env = {"SLURM_PROCID=0", "SLURM_LOCALID=0",
						       "RANK=5", "LOCAL_RANK=1", "WORLD_SIZE=8"}});
	assert_int_equal(row(&r, p)->rank_plus1, 6);
	assert_int_equal(row(&r, p)->local_rank_plus1, 2);
	assert_int_equal(row(&r, p)->world_size, 8);
	assert_string_equal(row(&r, p)->rank_source, "RANK");
	p = rig_attach(&r, &(struct rig_hello){.pid = 11, .env = {"SLURM_LOCALID=3", "RANK=7"}});
	assert_int_equal(row(&r, p)->local_rank_plus1, 0); /* another launcher's */
	p = rig_attach(&r, &(struct rig_hello){.pid = 12, .env = {"HEADRACE_RANK=2", "RANK=7"}});
	assert_int_equal(row(&r, p)->rank_plus1, 3);
	p = rig_attach(
	    &r, &(struct rig_hello){.pid = 13, .env = {"PMIX_RANK=47", "MPI_LOCALRANKID=11"}});
	assert_int_equal(row(&r, p)->rank_plus1, 48);
	assert_int_equal(row(&r, p)->local_rank_plus1, 12);
	p = rig_attach(
	    &r, &(struct rig_hello){.pid = 14,
				    .env = {"RANK=x", "RANK=", "RANK=-1", "RANK=99999999999"}});
	assert_int_equal(row(&r, p)->rank_plus1, 0);
	assert_string_equal(row(&r, p)->rank_source, "");
	rig_done(&r);
}

/* The environment that a program gives itself: the last value of a variable is its rank. */
static void ranks_change(void **state)
{
	struct rig r;
	uint64_t p;

	rig_init(&r);
	p = rig_attach(&r, &(struct rig_hello){.pid = 10, .env = {"RANK=5", "LOCAL_RANK=1"}});
	env(&r, p, "RANK=6");
	env(&r, p, "LOCAL_RANK=2");
	env(&r, p, "SLURM_PROCID=7"); /* of lower precedence */
	assert_int_equal(row(&r, p)->rank_plus1, 7);
	assert_int_equal(row(&r, p)->local_rank_plus1, 3);
	rig_done(&r);
}

/* Process 10 is rank 3, and forks the processes 20, 21 and 22. Returns the rank. */
static uint64_t rank_and_children(struct rig *r, uint64_t child[3])
{
	uint64_t rank = rig_attach(r, &(struct rig_hello){.pid = 10, .env = {"RANK=3"}});

	for (int i = 0; i < 3; i++)
		child[i] = rig_attach(r, &(struct rig_hello){.pid = 20 + i,
							     .ppid = 10,
							     .forked = true,
							     .parent = rank,
							     .env = {"RANK=3"}});
	return rank;
}

static void forked_workers(void **state)
{
	struct rig r;
	uint64_t rank, w[3], tool;

	rig_init(&r);
	rank = rank_and_children(&r, w);
	tool = rig_attach(&r, &(struct rig_hello){.pid = 30,
						  .ppid = 10,
						  .exe = "/usr/bin/gcc",
						  .cmdline = "gcc x.c",
						  .env = {"RANK=3"}});
	reads(&r, w[1], true); /* Python's own files do not make a worker */
	assert_int_equal(row(&r, w[1])->worker_plus1, 0);
	reads(&r, w[1], false);
	reads(&r, w[0], false);
	reads(&r, tool, false);
	assert_int_equal(row(&r, w[1])->worker_plus1, 1);
	assert_int_equal(row(&r, w[0])->worker_plus1, 2);
	assert_int_equal(row(&r, w[2])->worker_plus1, 0);
	assert_int_equal(row(&r, w[0])->rank_plus1, 4);
	assert_int_equal(row(&r, w[0])->parent_proc, rank);
	assert_int_equal(row(&r, tool)->worker_plus1, 0);
	assert_int_equal(row(&r, tool)->rank_plus1, 4);
	assert_int_equal(row(&r, rank)->worker_plus1, 0);
	rig_end(&r, w[1], "");
	reads(&r, w[2], false);
	assert_int_equal(row(&r, w[2])->worker_plus1, 1); /* the slot was free again */
	assert_int_equal(rig_process(&r, w[1])->worker_plus1, 1);
	rig_done(&r);
}

/* A worker may read its first file after the main process has ended, for example after a kill. */
static void workers_outlive_their_rank(void **state)
{
	struct rig r;
	uint64_t rank, shell, w[3], sub;

	rig_init(&r);
	rank = rank_and_children(&r, w);
	shell = rig_attach(
	    &r, &(struct rig_hello){.pid = 30, .exe = "/usr/bin/bash", .cmdline = "bash run.sh"});
	sub = rig_attach(
	    &r, &(struct rig_hello){.pid = 31, .ppid = 30, .forked = true, .parent = shell});
	reads(&r, w[0], false);
	rig_end(&r, rank, "signal 9");
	rig_end(&r, shell, "");
	rig_tick(&r, r.now + 1);
	reads(&r, w[1], false);
	reads(&r, sub, false);
	env(&r, w[0], "WORLD_SIZE=4");
	env(&r, w[2], "HEADRACE_RANK=5");
	reads(&r, w[2], false);
	assert_int_equal(row(&r, w[0])->worker_plus1, 1);
	assert_int_equal(row(&r, w[1])->worker_plus1, 2);
	assert_int_equal(row(&r, w[1])->rank_plus1, 4);
	assert_int_equal(row(&r, w[2])->worker_plus1, 0); /* now a rank itself */
	assert_int_equal(row(&r, w[2])->rank_plus1, 6);
	assert_int_equal(row(&r, sub)->worker_plus1, 0);
	rig_done(&r);
}

/* Workers of torch's DataLoader report their loader and their number: they are the rank's workers, and pools are not. */
static void workers_that_report_their_number(void **state)
{
	struct rig r;
	uint64_t rank, pool[2], w[4], helper;

	rig_init(&r);
	rank = rig_attach(&r, &(struct rig_hello){.pid = 10, .env = {"RANK=3"}});
	for (int i = 0; i < 2; i++) {
		pool[i] = rig_attach(
		    &r,
		    &(struct rig_hello){.pid = 20 + i, .ppid = 10, .forked = true, .parent = rank});
		reads(&r, pool[i], false);
		assert_int_equal(row(&r, pool[i])->worker_plus1, i + 1);
	}
	for (int i = 0; i < 3; i++)
		w[i] = rig_attach(
		    &r,
		    &(struct rig_hello){.pid = 30 + i, .ppid = 10, .forked = true, .parent = rank});
	env(&r, w[1], "HEADRACE_LOADER=0");
	env(&r, w[1], "HEADRACE_LOADER_WORKER=1");
	assert_int_equal(row(&r, w[1])->worker_plus1, 2); /* before it reads */
	assert_int_equal(row(&r, w[1])->loader_plus1, 1);
	assert_int_equal(row(&r, w[1])->loader_worker_plus1, 2);
	for (int i = 0; i < 2; i++)
		assert_int_equal(row(&r, pool[i])->worker_plus1, 0);
	reads(&r, pool[1], false);
	assert_int_equal(row(&r, pool[1])->worker_plus1, 0);
	env(&r, w[0], "HEADRACE_LOADER_WORKER=0");
	assert_int_equal(row(&r, w[0])->worker_plus1, 1);
	assert_int_equal(row(&r, w[0])->loader_plus1, 0);

	/* Another loader's worker 1, which lives at the same time as that of loader 0. */
	env(&r, w[2], "HEADRACE_LOADER=1");
	env(&r, w[2], "HEADRACE_LOADER_WORKER=1");
	assert_int_equal(row(&r, w[2])->worker_plus1, 3);
	assert_int_equal(row(&r, w[2])->loader_worker_plus1, 2);

	/* Loader 0's worker 1 of the next epoch, while the end of the earlier one is not known yet. */
	w[3] = rig_attach(
	    &r, &(struct rig_hello){.pid = 40,
				    .ppid = 10,
				    .forked = true,
				    .parent = rank,
				    .env = {"HEADRACE_LOADER=0", "HEADRACE_LOADER_WORKER=1"}});
	assert_int_equal(row(&r, w[3])->worker_plus1, 2);

	/* What a worker starts inherits its numbers. */
	helper = rig_attach(
	    &r, &(struct rig_hello){.pid = 50,
				    .ppid = 40,
				    .forked = true,
				    .parent = w[3],
				    .env = {"HEADRACE_LOADER=0", "HEADRACE_LOADER_WORKER=1"}});
	reads(&r, helper, false);
	assert_int_equal(row(&r, helper)->worker_plus1, 0);
	assert_int_equal(row(&r, helper)->loader_worker_plus1, 0);
	rig_done(&r);
}

/* A worker of the next loop has its own number, even if that of the last loop has just ended. */
static void a_number_is_free_after_the_end(void **state)
{
	struct rig r;
	uint64_t rank, w[2];

	rig_init(&r);
	rank = rig_attach(&r, &(struct rig_hello){.pid = 10, .env = {"RANK=3"}});
	for (int loader = 0; loader < 2; loader++) {
		w[loader] = rig_attach(
		    &r,
		    &(struct rig_hello){.pid = 20 + loader,
					.ppid = 10,
					.forked = true,
					.parent = rank,
					.env = {loader ? "HEADRACE_LOADER=1" : "HEADRACE_LOADER=0",
						"HEADRACE_LOADER_WORKER=1"}});
		assert_int_equal(row(&r, w[loader])->worker_plus1, 2);
		rig_end(&r, w[loader], "0");
	}
	rig_done(&r);
}

static void spawned_and_forkserver_workers(void **state)
{
	struct rig r;
	uint64_t spawn, server, child, tracker, shell;

	rig_init(&r);
	rig_attach(&r, &(struct rig_hello){.pid = 10, .env = {"RANK=0"}});
	spawn = rig_attach(
	    &r, &(struct rig_hello){.pid = 11, .ppid = 10, .cmdline = SPAWN, .env = {"RANK=0"}});
	tracker = rig_attach(
	    &r,
	    &(struct rig_hello){
		.pid = 12,
		.ppid = 10,
		.env = {"RANK=0"},
		.cmdline = "python3 -c from multiprocessing.resource_tracker import main;main(5)"});
	server = rig_attach(
	    &r, &(struct rig_hello){
		    .pid = 13,
		    .ppid = 10,
		    .env = {"RANK=0"},
		    .cmdline = "python3 -c from multiprocessing.forkserver import main; main(6)"});
	child = rig_attach(
	    &r, &(struct rig_hello){
		    .pid = 14, .ppid = 13, .forked = true, .parent = server, .env = {"RANK=0"}});
	shell = rig_attach(&r, &(struct rig_hello){
				   .pid = 15, .ppid = 10, .exe = "/bin/sh", .cmdline = "sh -c ls"});
	reads(&r, child, false);
	reads(&r, spawn, false);
	reads(&r, tracker, false);
	reads(&r, server, false);
	reads(&r, shell, false);
	assert_int_equal(row(&r, child)->worker_plus1, 1);
	assert_int_equal(row(&r, spawn)->worker_plus1, 2);
	assert_int_equal(row(&r, tracker)->worker_plus1, 0);
	assert_int_equal(row(&r, server)->worker_plus1, 0);
	assert_int_equal(row(&r, shell)->worker_plus1, 0);
	assert_int_equal(row(&r, shell)->rank_plus1, 1); /* a plain child inherits */
	assert_string_equal(row(&r, shell)->rank_source, "inherited");
	rig_done(&r);
}

/* Processes that train, without ranks (Hogwild): they are no workers, and have workers. */
static void children_that_train(void **state)
{
	struct hr_record step;
	struct rig r;
	uint64_t parent, child, worker;

	rig_init(&r);
	parent = rig_attach(&r, &(struct rig_hello){.pid = 10});
	child = rig_attach(
	    &r, &(struct rig_hello){.pid = 11, .ppid = 10, .forked = true, .parent = parent});
	worker = rig_attach(
	    &r, &(struct rig_hello){.pid = 12, .ppid = 11, .forked = true, .parent = child});
	reads(&r, child, false);
	reads(&r, worker, false);
	assert_int_equal(row(&r, child)->worker_plus1, 1);
	assert_int_equal(row(&r, worker)->worker_plus1, 0); /* of a worker */
	rig_region_key(&r, child, 8, HR_REGION_OPTIMIZER, "torch", "", "Optimizer.step");
	step = rig_region(&r, 8, HR_REGION_OPTIMIZER, 50);
	rig_records(&r, child, &step, 1);
	assert_int_equal(row(&r, child)->worker_plus1, 0);
	assert_int_equal(row(&r, worker)->worker_plus1, 1);
	rig_checkpoint(&r);
	reads(&r, child, false);
	assert_int_equal(row(&r, child)->worker_plus1, 0);
	rig_done(&r);
}

static void a_laptop_run_has_workers_without_rank(void **state)
{
	struct rig r;
	uint64_t shell, root, w, helper, another;

	rig_init(&r);
	shell = rig_attach(
	    &r, &(struct rig_hello){.pid = 9, .exe = "/usr/bin/bash", .cmdline = "bash run.sh"});
	root = rig_attach(&r, &(struct rig_hello){.pid = 10, .ppid = 9});
	w = rig_attach(&r,
		       &(struct rig_hello){.pid = 11, .ppid = 10, .forked = true, .parent = root});
	helper =
	    rig_attach(&r, &(struct rig_hello){.pid = 12, .ppid = 11, .forked = true, .parent = w});
	reads(&r, root, false);
	reads(&r, w, false);
	reads(&r, helper, false);
	assert_int_equal(row(&r, root)->rank_plus1, 0);
	assert_int_equal(row(&r, w)->rank_plus1, 0);
	assert_int_equal(row(&r, w)->worker_plus1, 1);
	assert_int_equal(row(&r, root)->worker_plus1, 0);
	assert_int_equal(row(&r, helper)->worker_plus1, 0); /* a worker's child is none */
	w = rig_attach(&r,
		       &(struct rig_hello){.pid = 13, .ppid = 9, .forked = true, .parent = shell});
	reads(&r, w, false);
	assert_int_equal(row(&r, w)->worker_plus1, 0); /* a shell's subshell is none */
	another = rig_attach(&r, &(struct rig_hello){.pid = 14, .ppid = 9});
	w = rig_attach(
	    &r, &(struct rig_hello){.pid = 15, .ppid = 14, .forked = true, .parent = another});
	reads(&r, w, false);
	assert_int_equal(row(&r, w)->worker_plus1, 1); /* the first one of another program */
	rig_done(&r);
}

/* The forkserver is between the training process and its workers. */
static void a_forkserver_on_a_laptop(void **state)
{
	struct rig r;
	uint64_t trainer, server, child;

	rig_init(&r);
	trainer = rig_attach(&r, &(struct rig_hello){.pid = 10});
	server = rig_attach(
	    &r, &(struct rig_hello){
		    .pid = 13,
		    .ppid = 10,
		    .cmdline = "python3 -c from multiprocessing.forkserver import main; main(6)"});
	child = rig_attach(
	    &r, &(struct rig_hello){.pid = 14, .ppid = 13, .forked = true, .parent = server});
	reads(&r, server, false);
	reads(&r, child, false);
	assert_int_equal(row(&r, server)->worker_plus1, 0);
	assert_int_equal(row(&r, child)->worker_plus1, 1);
	env(&r, trainer, "RANK=2"); /* the training process gets it from torch.distributed */
	assert_int_equal(row(&r, child)->rank_plus1, 3);
	rig_done(&r);
}

static void a_child_inherits_all_of_a_rank(void **state)
{
	struct rig r;
	uint64_t rank, child;

	rig_init(&r);
	rank = rig_attach(
	    &r, &(struct rig_hello){.pid = 10, .env = {"RANK=5", "LOCAL_RANK=1", "WORLD_SIZE=8"}});
	child = rig_attach(
	    &r, &(struct rig_hello){.pid = 11, .ppid = 10, .forked = true, .parent = rank});
	assert_int_equal(row(&r, child)->rank_plus1, 6);
	assert_int_equal(row(&r, child)->local_rank_plus1, 2);
	assert_int_equal(row(&r, child)->world_size, 8);
	assert_string_equal(row(&r, child)->rank_source, "inherited");
	rig_done(&r);
}

static void mp_spawn_ranks_are_inferred(void **state)
{
	struct rig r;
	uint64_t root, a, b, wa, wb;

	rig_init(&r);
	root = rig_attach(&r, &(struct rig_hello){.pid = 10});
	/* The one that started second attaches first. */
	b = rig_attach(
	    &r, &(struct rig_hello){.pid = 12, .ppid = 10, .cmdline = SPAWN, .start_time = 200});
	reads(&r, b, false);
	assert_int_equal(row(&r, b)->worker_plus1, 1); /* so far it looks like a worker */
	wb =
	    rig_attach(&r, &(struct rig_hello){.pid = 13, .ppid = 12, .forked = true, .parent = b});
	reads(&r, wb, false);
	assert_int_equal(row(&r, b)->rank_plus1, 1);
	a = rig_attach(
	    &r, &(struct rig_hello){.pid = 11, .ppid = 10, .cmdline = SPAWN, .start_time = 100});
	wa =
	    rig_attach(&r, &(struct rig_hello){.pid = 14, .ppid = 11, .forked = true, .parent = a});
	reads(&r, wa, false);
	assert_int_equal(row(&r, a)->rank_plus1, 1);
	assert_int_equal(row(&r, b)->rank_plus1, 2);
	assert_string_equal(row(&r, b)->rank_source, "inferred");
	assert_int_equal(row(&r, b)->worker_plus1, 0);
	assert_int_equal(row(&r, wb)->rank_plus1, 2);
	assert_int_equal(row(&r, wb)->worker_plus1, 1);
	assert_int_equal(row(&r, wa)->worker_plus1, 1);
	assert_int_equal(row(&r, root)->rank_plus1, 0);
	env(&r, b, "RANK=9"); /* then it says so itself */
	assert_int_equal(row(&r, b)->rank_plus1, 10);
	assert_int_equal(row(&r, wb)->rank_plus1, 10);
	assert_int_equal(row(&r, wb)->worker_plus1, 1);
	rig_done(&r);
}

static void a_spawned_child_that_names_a_meeting_point_is_a_rank(void **state)
{
	struct rig r;
	uint64_t a;

	rig_init(&r);
	rig_attach(&r, &(struct rig_hello){.pid = 10});
	a = rig_attach(&r, &(struct rig_hello){.pid = 11, .ppid = 10, .cmdline = SPAWN});
	env(&r, a, "MASTER_ADDR=localhost");
	reads(&r, a, false);
	assert_int_equal(row(&r, a)->rank_plus1, 1);
	assert_int_equal(row(&r, a)->worker_plus1, 0);
	rig_done(&r);
}

static void exec_keeps_the_place(void **state)
{
	struct rig r;
	uint64_t parent, old, new;

	rig_init(&r);
	parent = rig_attach(&r, &(struct rig_hello){.pid = 10, .env = {"RANK=4"}});
	old = rig_attach(
	    &r, &(struct rig_hello){.pid = 11, .ppid = 10, .forked = true, .parent = parent});
	new = rig_attach(
	    &r, &(struct rig_hello){
		    .pid = 11, .ppid = 10, .exec_of = old, .exe = "/bin/tar", .cmdline = "tar x"});
	rig_end(&r, old, "exec");
	reads(&r, new, false);
	assert_int_equal(row(&r, new)->exec_of, old);
	assert_int_equal(row(&r, new)->parent_proc, parent);
	assert_int_equal(row(&r, new)->rank_plus1, 5);
	assert_int_equal(row(&r, new)->worker_plus1, 0);
	assert_string_equal(rig_process(&r, old)->exit, "exec");
	rig_end(&r, new, "");
	assert_int_not_equal(row(&r, new)->end_ns, 0);
	rig_done(&r);
}

static void attribution_outlives_a_checkpoint(void **state)
{
	struct rig r;
	uint64_t rank, w[2];

	rig_init(&r);
	rank = rig_attach(&r, &(struct rig_hello){.pid = 10, .env = {"RANK=3"}});
	w[0] = rig_attach(&r, &(struct rig_hello){.pid = 20, .forked = true, .parent = rank});
	reads(&r, w[0], false);
	rig_checkpoint(&r);
	w[1] = rig_attach(&r, &(struct rig_hello){.pid = 21, .forked = true, .parent = rank});
	reads(&r, w[1], false);
	assert_int_equal(row(&r, w[1])->worker_plus1, 2);
	assert_int_equal(row(&r, w[1])->rank_plus1, 4);
	rig_done(&r);
}

/* A sibling that started first attaches after a restart of headraced: it has the lower rank. */
static void inferred_ranks_outlive_a_restart(void **state)
{
	struct rig_hello child = {.pid = 12,
				  .ppid = 10,
				  .cmdline = SPAWN,
				  .start_time = 200,
				  .env = {"MASTER_ADDR=localhost"}};
	struct rig r;
	uint64_t a, b;

	rig_init(&r);
	rig_attach(&r, &(struct rig_hello){.pid = 10});
	b = rig_attach(&r, &child);
	assert_int_equal(row(&r, b)->rank_plus1, 1);
	rig_restart(&r);
	child.pid = 11;
	child.start_time = 100;
	a = rig_attach(&r, &child);
	assert_int_equal(row(&r, a)->rank_plus1, 1);
	assert_int_equal(row(&r, b)->rank_plus1, 2);
	rig_done(&r);
}

/* The last JobEvent among the frames seen. */
static const Headrace__JobEvent *job(const struct rig *r)
{
	const Headrace__JobEvent *last = NULL;

	for (unsigned i = 0; i < r->n_frames; i++)
		if (r->frames[i]->frame.body_case == HEADRACE__FRAME__BODY_JOB)
			last = r->frames[i]->frame.job;
	return last;
}

/* Numbers alone, the first that is said, and kept by a daemon that knows only a snapshot. */
static void array_of_a_job(void **state)
{
	struct hr_entry_stop stop = {.now_ns = RIG_START + RIG_SECOND, .state = "ended"};
	struct rig r;

	rig_init(&r);
	rig_attach(&r, &(struct rig_hello){.pid = 10,
					   .env = {"SLURM_ARRAY_JOB_ID=1x",
						   "SLURM_ARRAY_TASK_ID=184467440737095516150"}});
	assert_string_equal(job(&r)->array_job, "");
	assert_string_equal(job(&r)->array_task, "");
	rig_attach(&r, &(struct rig_hello){
			   .pid = 11, .env = {"SLURM_ARRAY_TASK_ID=4", "SLURM_ARRAY_JOB_ID=123"}});
	rig_restart(&r);
	rig_attach(&r, &(struct rig_hello){.pid = 12, .env = {"SLURM_ARRAY_JOB_ID=9"}});
	assert_null(job(&r)); /* nothing new */
	rig_entry(&r, HR_ENTRY_STOP, &stop, sizeof(stop));
	assert_string_equal(job(&r)->array_job, "123");
	assert_string_equal(job(&r)->array_task, "4");
	rig_done(&r);
}

static void lists(void **state)
{
	assert_true(hr_ranks_hold(NULL, 7));
	assert_true(hr_ranks_hold("0-3,7", 7));
	assert_true(hr_ranks_hold("0-3,7", 0));
	assert_false(hr_ranks_hold("0-3,7", 4));
	assert_true(hr_ranks_valid("0"));
	assert_true(hr_ranks_valid("0-47,64"));
	assert_false(hr_ranks_valid(""));
	assert_false(hr_ranks_valid("1,"));
	assert_false(hr_ranks_valid("3-1"));
	assert_false(hr_ranks_valid("a"));
	assert_false(hr_ranks_valid("1-"));
	assert_false(hr_ranks_valid("99999999999"));
}

/* One list that does not hold it is enough; what is not known is in all. */
static void ranks_that_are_left_out(void **state)
{
	const struct hr_rank unknown = {0}, both = {.rank_plus1 = 6, .local_plus1 = 2};

	assert_false(hr_rank_left_out(&both, NULL, NULL));
	assert_false(hr_rank_left_out(&both, "5", "1"));
	assert_true(hr_rank_left_out(&both, "6", NULL));
	assert_true(hr_rank_left_out(&both, NULL, "2"));
	assert_true(hr_rank_left_out(&both, "5", "0"));
	assert_false(hr_rank_left_out(&unknown, "1", "1"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(precedence),
	    cmocka_unit_test(ranks_change),
	    cmocka_unit_test(forked_workers),
	    cmocka_unit_test(workers_outlive_their_rank),
	    cmocka_unit_test(workers_that_report_their_number),
	    cmocka_unit_test(a_number_is_free_after_the_end),
	    cmocka_unit_test(spawned_and_forkserver_workers),
	    cmocka_unit_test(a_forkserver_on_a_laptop),
	    cmocka_unit_test(children_that_train),
	    cmocka_unit_test(a_child_inherits_all_of_a_rank),
	    cmocka_unit_test(a_laptop_run_has_workers_without_rank),
	    cmocka_unit_test(mp_spawn_ranks_are_inferred),
	    cmocka_unit_test(a_spawned_child_that_names_a_meeting_point_is_a_rank),
	    cmocka_unit_test(exec_keeps_the_place),
	    cmocka_unit_test(attribution_outlives_a_checkpoint),
	    cmocka_unit_test(inferred_ranks_outlive_a_restart),
	    cmocka_unit_test(array_of_a_job),
	    cmocka_unit_test(lists),
	    cmocka_unit_test(ranks_that_are_left_out),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

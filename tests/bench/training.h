/* SPDX-License-Identifier: Apache-2.0 */
/*
 * training.h - a large data-parallel training job that never ran, as the Python module reports it
 *
 * Ranks train together: each step ends when the last rank has ended it. 2, 3 or 4 DataLoader workers
 * of each rank read samples from files, which lie one after the other in each file. There are three
 * passes over the loader, and each pass has new workers. Rank 0 saves a checkpoint after each pass.
 * The storage of one rank is slow.
 *
 * A plan has the moments of all ranks. Events and regions of a node come from it. One thread. The
 * same configuration gives the same job.
 */
#ifndef HEADRACE_TESTS_BENCH_TRAINING_H
#define HEADRACE_TESTS_BENCH_TRAINING_H

#include "common/event.h"
#include "tests/bench/generate_random.h"
#include "tests/bench/generate_stream.h"

#define HR_TRAIN_PASSES	     3u
#define HR_TRAIN_WORKERS_MAX 4u
#define HR_TRAIN_BATCH	     32u /* samples of a batch */
#define HR_TRAIN_PREFETCH    2u
#define HR_TRAIN_SAMPLE	     UINT64_C(112640) /* bytes between two samples of a file */
#define HR_TRAIN_FETCH_MAX   (6u * HR_TRAIN_BATCH)

struct hr_train_config {
	const char *job;
	uint64_t events;       /* of all ranks, about */
	uint32_t nodes, local; /* ranks of a node */
	uint32_t files;	       /* of the data set */
};

/* 128 nodes of 8 ranks, and a data set of 8,192 files. */
#define HR_TRAIN_CONFIG(n)                                                                         \
	((struct hr_train_config){                                                                 \
	    .job = "train", .events = (n), .nodes = 128, .local = 8, .files = 8192})

/* Moments of a batch and of its step, CLOCK_BOOTTIME. */
struct hr_train_step {
	uint64_t fetch_from, fetch_to, wait_from, wait_to, backward_from, backward_to, optimized;
};

/* Moments of a rank in a pass. */
struct hr_train_pass {
	uint64_t from, created; /* iter() */
	uint64_t last_wait, to; /* the wait that gets no batch */
	uint64_t saved;		/* the end of the checkpoint */
};

struct hr_train_plan {
	struct hr_train_config config;
	uint32_t ranks, batches; /* of a rank, in a pass */
	uint32_t slow;		 /* the rank with slow storage */
	struct hr_train_step *steps;
	struct hr_train_pass *passes;
	struct hr_gen_random random;
};

static inline struct hr_train_step *hr_train_step_of(const struct hr_train_plan *p, uint32_t rank,
						     uint32_t pass, uint32_t batch)
{
	return &p->steps[((size_t)rank * HR_TRAIN_PASSES + pass) * p->batches + batch];
}

static inline struct hr_train_pass *hr_train_pass_of(const struct hr_train_plan *p, uint32_t rank,
						     uint32_t pass)
{
	return &p->passes[rank * HR_TRAIN_PASSES + pass];
}

static inline uint32_t hr_train_workers(uint32_t rank)
{
	return 2 + rank % 3;
}

void hr_train_plan_make(const struct hr_train_config *config, struct hr_train_plan *ret);
void hr_train_plan_done(struct hr_train_plan *p);

/* An operation of a fetch. */
struct hr_train_call {
	uint64_t from, ns, bytes, offset;
	uint32_t file; /* number in the data set */
	uint16_t op;
};

/*
 * Makes the operations of a fetch that begins at `from`, and returns when it ends. *ret_n: at most
 * HR_TRAIN_FETCH_MAX. *ret_cpu_ns: the CPU time of the worker.
 */
uint64_t hr_train_fetch(struct hr_train_plan *p, uint32_t rank, uint32_t pass, uint32_t batch,
			uint64_t from, struct hr_train_call *calls, size_t *ret_n,
			uint64_t *ret_cpu_ns);

struct hr_train_totals {
	uint64_t events, regions, bytes; /* bytes: on disk */
};

/* Writes the job as a stream for each node. */
void hr_train_store(const struct hr_train_config *config, const char *store,
		    struct hr_train_totals *ret);

#endif

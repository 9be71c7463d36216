/* SPDX-License-Identifier: Apache-2.0 */
/*
 * generate.h - a training job that never ran: deterministic events for benches and tests
 *
 * Purpose   The shape of docs/storage.md: `nodes` nodes of `ranks` ranks with `workers` workers
 *           each, which read `paths` ImageNet-like files in a new random order each epoch (open,
 *           fstat, lseek, read 4 KiB, reads of 64 KiB, a read that returns 0, close) while ranks
 *           write checkpoints. Times are nanoseconds with lognormal noise, page cache hot.
 * Owner     One generator per node, one thread. The same configuration gives the same events
 *           everywhere.
 */
#ifndef HEADRACE_TESTS_BENCH_GENERATE_H
#define HEADRACE_TESTS_BENCH_GENERATE_H

#include <stddef.h>

#include "common/event.h"
#include "tests/bench/generate_stream.h"

struct hr_gen_config {
	uint64_t seed;
	uint64_t events; /* of all nodes */
	uint32_t nodes;
	uint32_t ranks;	  /* of a node */
	uint32_t workers; /* of a rank */
	uint32_t paths;
	uint32_t batch_events;
};

/* 4 nodes x (4 ranks + 16 workers), 1.3 M paths, batches of 64 Ki events. */
#define HR_GEN_CONFIG(n)                                                                           \
	((struct hr_gen_config){.seed = 1,                                                         \
				.events = (n),                                                     \
				.nodes = 4,                                                        \
				.ranks = 4,                                                        \
				.workers = 4,                                                      \
				.paths = 1300000,                                                  \
				.batch_events = HR_GEN_BATCH})
#define HR_GEN_BATCH 65536u

struct hr_gen;

struct hr_gen *hr_gen_new(const struct hr_gen_config *config, uint32_t node);
void hr_gen_free(struct hr_gen *g);

/*
 * Fills `events` with the next `n` in completion order. Files get stream ids from 1 in first-use
 * order.
 */
void hr_gen_next(struct hr_gen *g, struct hr_event *events, size_t n);

/* Tasks of the node, what hr_event.task indexes: ranks first. proc is task + 1. */
size_t hr_gen_tasks(const struct hr_gen *g, const struct hr_task **ret);

/* Rank (in the job) and worker (-1: the rank itself) of a task. */
uint32_t hr_gen_rank(const struct hr_gen *g, uint32_t task);
int hr_gen_worker(const struct hr_gen *g, uint32_t task);

/* Stream ids given so far, and their text: NUL-terminated into `path`, returns its length. */
uint32_t hr_gen_files(const struct hr_gen *g);
size_t hr_gen_path(const struct hr_gen *g, uint32_t file, char path[HR_GEN_PATH_BYTES]);
uint64_t hr_gen_path_hash(const struct hr_gen *g, uint32_t file);

/*
 * Writes the job `job` as a store with a stream per node: processes, mounts, paths, events, rollups,
 * ended.
 */
void hr_gen_store(const struct hr_gen_config *config, const char *store, const char *job);

#endif

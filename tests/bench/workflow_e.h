/* SPDX-License-Identifier: Apache-2.0 */
/*
 * workflow_e.h - the checkpoint study of workflow E, generated: a job of the published shape and what
 * is true of it
 *
 * Purpose   2 nodes of 8 ranks with 4 DataLoader workers each. Workers read samples from shards on a
 *           parallel file system; ranks step, wait for input and write checkpoints to it and to the
 *           node's SSD, or with SCR to the SSD first, from where they are flushed. How often each call
 *           is made on `model*` is what the study published.
 * Truth     struct hr_we_totals is summed from what the generator decides, event by event, and knows
 *           nothing of stores, batches or SQL.
 * Owner     A node's generator belongs to one thread. The same configuration gives the same job.
 */
#ifndef HEADRACE_TESTS_BENCH_WORKFLOW_E_H
#define HEADRACE_TESTS_BENCH_WORKFLOW_E_H

#include <stdbool.h>

#include "common/event.h"
#include "common/region.h"
#include "tests/bench/generate_stream.h"

#define HR_WE_NODES    2u
#define HR_WE_LOCAL    8u /* ranks of a node */
#define HR_WE_RANKS    (HR_WE_NODES * HR_WE_LOCAL)
#define HR_WE_WORKERS  4u /* of a rank */
#define HR_WE_EVENTS   UINT64_C(147302750)
#define HR_WE_MOUNTS   2u
#define HR_WE_PATTERNS 5u
#define HR_WE_REGION   "PyTorchCheckpointing.checkpoint"
#define HR_WE_FILE     "model-1-0.pt" /* rank 0's part of the first checkpoint */

extern const struct hr_gen_mount hr_we_mounts[HR_WE_MOUNTS];
extern const char *const hr_we_patterns[HR_WE_PATTERNS];

struct hr_we_config {
	const char *job;
	uint64_t events; /* of both nodes, those of the checkpoints included */
	bool scr;
	uint64_t lost; /* operations that the second node says it did not record; 0: none */
};

struct hr_we_totals {
	uint64_t events;
	uint64_t checkpoint_ns[HR_WE_RANKS];	      /* in regions HR_WE_REGION */
	uint64_t mount_ns[HR_WE_MOUNTS][HR_WE_RANKS]; /* in calls, workers included */
	uint64_t bytes_read[HR_WE_PATTERNS], bytes_written[HR_WE_PATTERNS];
	uint64_t model_ops[HR_OP_MAX]; /* calls on model* by op */
	uint64_t *writes;	       /* their sizes */
	size_t n_writes, writes_room;
	struct hr_event file_events[16]; /* of HR_WE_FILE, in order */
	size_t n_file_events;
	uint64_t regions, bytes; /* rows; all data on disk */
};

/* Writes the job as a stream per node; `ret` is zero before the first of its calls. */
void hr_we_store(const struct hr_we_config *config, const char *store, struct hr_we_totals *ret);
void hr_we_totals_done(struct hr_we_totals *t);

/* Fewest events of a job: those of its checkpoints, and something to read for each worker. */
#define HR_WE_EVENTS_MIN 100000u

/* ---- one node, for hr_we_store ------------------------------------------------------------ */

struct hr_we_node;

struct hr_we_node *hr_we_node_new(const struct hr_we_config *config, uint32_t node,
				  struct hr_we_totals *totals);
void hr_we_node_free(struct hr_we_node *n);

/* The next events in completion order, at most `max`; 0: the job is over. */
size_t hr_we_next(struct hr_we_node *n, struct hr_event *events, size_t max);

/* Mount (an index of hr_we_mounts + 1) of a file, and its name, by stream id. */
uint32_t hr_we_mount(const struct hr_we_node *n, uint32_t file);
hr_gen_file_fn hr_we_file;
uint32_t hr_we_files(const struct hr_we_node *n);

/* Ranks first, as in generate.h. */
size_t hr_we_tasks(const struct hr_we_node *n, const struct hr_task **ret);
uint32_t hr_we_rank(const struct hr_we_node *n, uint32_t task);
int hr_we_worker(const struct hr_we_node *n, uint32_t task);

/* Regions that ended since the last call; valid until the next. Names are those of `ret_names`. */
enum hr_we_name { HR_WE_EPOCH, HR_WE_STEP, HR_WE_WAIT, HR_WE_CHECKPOINT, HR_WE_SAVE };
struct hr_we_region {
	struct hr_region region; /* without texts */
	enum hr_we_name name;
};
extern const char *const hr_we_names[];
size_t hr_we_regions(struct hr_we_node *n, const struct hr_we_region **ret);

#endif

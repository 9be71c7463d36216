/* SPDX-License-Identifier: Apache-2.0 */
/*
 * generate_stream.h - the stream of one node of a generated job
 *
 * Owner     Embedded in the struct of its generator; one thread. Failures abort, as in build.h.
 */
#ifndef HEADRACE_TESTS_BENCH_GENERATE_STREAM_H
#define HEADRACE_TESTS_BENCH_GENERATE_STREAM_H

#include "common/rollup.h"
#include "tests/store/build.h"

#define HR_GEN_BOOT_NS	  UINT64_C(86400000000000)	/* first event, CLOCK_BOOTTIME */
#define HR_GEN_REAL_NS	  UINT64_C(1700000000000000000) /* the same moment, wall clock */
#define HR_GEN_PATH_BYTES 128

struct hr_gen_stream {
	struct build b; /* b.now_ns: CLOCK_BOOTTIME of the next frame's clock sample */
	struct hr_rollups sums;
	uint64_t window;  /* of `sums` */
	uint32_t *cached; /* of each task and op: its row in `sums` */
};

struct hr_gen_mount { /* id: its place in the list, from 1 */
	char *path, *fs_type;
};

/* The first clock sample is at HR_GEN_BOOT_NS. `n_tasks`: of hr_gen_add(). */
void hr_gen_open(struct hr_gen_stream *s, const char *store, const struct hr_stream_id *id,
		 size_t n_tasks);
uint64_t hr_gen_close(struct hr_gen_stream *s); /* returns how many bytes were written */

/* Of user 1000, "ada"; `ended` at the moment of the last event. */
void hr_gen_send_job(struct hr_gen_stream *s, const char *name, uint32_t ranks, bool ended);
void hr_gen_send_mounts(struct hr_gen_stream *s, const struct hr_gen_mount *mounts, size_t n);
/* Sets now_ns to the last event's end. */
void hr_gen_send_events(struct hr_gen_stream *s, const struct hr_event *events, size_t n,
			const struct hr_task *tasks, size_t n_tasks);

/*
 * Adds an event of process `task` + 1 to the sums of its window, and sends those of the window
 * before.
 */
void hr_gen_add(struct hr_gen_stream *s, const struct hr_event *e, uint32_t mount);
void hr_gen_send_sums(struct hr_gen_stream *s); /* of the last window */

/*
 * Process `task` + 1: a rank when `worker` is -1, else that worker of it. `local` ranks a node, `ranks` in all. `cmdline` must
 * outlive the result.
 */
Headrace__Process hr_gen_process(uint32_t task, uint32_t rank, int worker, uint32_t local,
				 uint32_t ranks, const char *cmdline);

/* Fills hash, mount and scope of file `id`, and its path in `text`. */
typedef void hr_gen_file_fn(const void *generator, uint32_t id, Headrace__Path *row,
			    char text[HR_GEN_PATH_BYTES]);

/* Names the files `first` to `last`. */
void hr_gen_send_paths(struct hr_gen_stream *s, uint32_t first, uint32_t last, hr_gen_file_fn *fill,
		       const void *generator);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * generate_stream.h - the stream of one node of a generated job
 *
 * Owner     Embedded in whoever writes it; one thread. 0 or -errno everywhere.
 */
#ifndef HEADRACE_TESTS_BENCH_GENERATE_STREAM_H
#define HEADRACE_TESTS_BENCH_GENERATE_STREAM_H

#include "store/store.h"
#include "common/batch.h"
#include "tests/bench/generate_rollups.h"

#define HR_GEN_BOOT_NS	  UINT64_C(86400000000000)	/* first event, CLOCK_BOOTTIME */
#define HR_GEN_REAL_NS	  UINT64_C(1700000000000000000) /* the same moment, wall clock */
#define HR_GEN_PATH_BYTES 128

struct hr_gen_stream {
	struct hr_writer *writer;
	uint64_t now_ns; /* CLOCK_BOOTTIME of the next frame's clock sample */
};

struct hr_gen_mount { /* id: its place in the list, from 1 */
	char *path, *fs_type;
};

/* Numbers the frame, adds a clock sample, appends it. */
int hr_gen_send(struct hr_gen_stream *s, Headrace__Frame *frame, int compress);
/* Of user 1000, "ada"; `ended` at the moment of the last event. */
int hr_gen_send_job(struct hr_gen_stream *s, const char *name, uint32_t ranks, bool ended);
int hr_gen_send_processes(struct hr_gen_stream *s, Headrace__Process *rows, size_t n);
int hr_gen_send_mounts(struct hr_gen_stream *s, const struct hr_gen_mount *mounts, size_t n);
/* Sets now_ns to the last event's end. */
int hr_gen_send_events(struct hr_gen_stream *s, struct hr_encoder *encoder,
		       const struct hr_event *events, size_t n, const struct hr_task *tasks,
		       size_t n_tasks);
int hr_gen_send_rollups(struct hr_gen_stream *s, struct hr_gen_rollups *rollups);
int hr_gen_send_end(struct hr_gen_stream *s);

/*
 * Process `task` + 1: a rank when `worker` is -1, else that worker of it. `local` ranks a node, `ranks` in all. `cmdline` must
 * outlive *ret.
 */
void hr_gen_process(uint32_t task, uint32_t rank, int worker, uint32_t local, uint32_t ranks,
		    char *cmdline, Headrace__Process *ret);

/* Fills hash, mount and text of file `id`: the text in `text`, its length returned. */
typedef size_t hr_gen_file_fn(const void *generator, uint32_t id, Headrace__Path *row,
			      char text[HR_GEN_PATH_BYTES]);

/* Names the files `first` to `last`. */
int hr_gen_send_paths(struct hr_gen_stream *s, uint32_t first, uint32_t last, hr_gen_file_fn *fill,
		      const void *generator);

#endif

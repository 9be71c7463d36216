/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fixture_frames.h - frames of which the small stores are made (fixture_store.c, fixture_probed.c)
 */
#ifndef HEADRACE_TESTS_QUERY_FIXTURE_FRAMES_H
#define HEADRACE_TESTS_QUERY_FIXTURE_FRAMES_H

#include "common/batch.h"
#include "common/region.h"
#include "tests/query/fixture.h"

#define FIX_BYTES(text) ((ProtobufCBinaryData){sizeof(text) - 1, (uint8_t *)(text)})

struct fixture__stream {
	struct hr_writer *writer;
	uint64_t late_ns; /* later begin of the job than on other nodes */
	unsigned node;	  /* of fixture__job_on(): 0 or 1 */
};

char *fixture__make_folder(void); /* of a store without streams */
void fixture__open_stream(struct fixture__stream *s, const char *store, const char *job,
			  const char *node);
void fixture__send(struct fixture__stream *s, Headrace__Frame *frame);

#define FIX_ROWS 128u /* most rows of these */
void fixture__send_process_rows(struct fixture__stream *s, Headrace__Process *rows, size_t n);
void fixture__send_path_rows(struct fixture__stream *s, Headrace__Path *rows, size_t n,
			     Headrace__Mount *mounts, size_t n_mounts);

void fixture__send_job(struct fixture__stream *s, char *state, uint32_t ranks);

/* proc 1: first_rank; proc 2: its worker 3; proc 3: no rank */
void fixture__send_processes(struct fixture__stream *s, uint32_t first_rank);

/* 1 data, 2 a step of a checkpoint, 3 another, 4 not UTF-8 with a line end, 5 runtime */
void fixture__send_paths(struct fixture__stream *s);
void fixture__send_end(struct fixture__stream *s);

void fixture__send_events(struct fixture__stream *s, const struct hr_event *list, size_t n,
			  const struct hr_task *of, uint32_t n_tasks);
void fixture__send_regions(struct fixture__stream *s, struct hr_regions *r); /* and frees them */

/* A group's setup: a store of one job, a, on one node, opened as `fix`. `fill` sends what it consists of, but its begin and end. */
int fixture__one_job(void **state, uint32_t ranks, void (*fill)(struct fixture__stream *));

/* The same, on one or two nodes. */
int fixture__job_on(void **state, unsigned nodes, uint32_t ranks,
		    void (*fill)(struct fixture__stream *));

#endif

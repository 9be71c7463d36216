/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fixture_frames.h - frames of which the small stores are made (fixture_store.c, fixture_probed.c)
 */
#ifndef HEADRACE_TESTS_QUERY_FIXTURE_FRAMES_H
#define HEADRACE_TESTS_QUERY_FIXTURE_FRAMES_H

#include "tests/query/fixture.h"
#include "tests/store/build.h"

struct fixture__stream {
	struct build b;
	uint64_t late_ns; /* later begin of the job than on other nodes */
	unsigned node;	  /* of fixture__job_on(): 0 or 1 */
};

char *fixture__make_folder(void); /* of a store without streams */
void fixture__open(struct fixture__stream *s, const char *store, const struct hr_stream_id *id);
void fixture__open_stream(struct fixture__stream *s, const char *store, const char *job,
			  const char *node);

void fixture__send_job(struct fixture__stream *s, char *state, uint32_t ranks);

/* proc 1: first_rank; proc 2: its worker 3; proc 3: no rank */
void fixture__send_processes(struct fixture__stream *s, uint32_t first_rank);

/* 1 data, 2 a step of a checkpoint, 3 another, 4 not UTF-8 with a line end, 5 runtime */
void fixture__send_paths(struct fixture__stream *s);

/* A group's setup: a store of one job, a, on one node, opened as `fix`. `fill` sends what it consists of, but its begin and end. */
int fixture__one_job(void **state, uint32_t ranks, void (*fill)(struct fixture__stream *));

/* The same, on one or two nodes. */
int fixture__job_on(void **state, unsigned nodes, uint32_t ranks,
		    void (*fill)(struct fixture__stream *));

#endif

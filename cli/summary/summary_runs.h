/* SPDX-License-Identifier: Apache-2.0 */
/*
 * summary_runs.h - groups the streams of a job into runs
 *
 * Streams that overlap in time, for example those of several nodes, are one run. A stream that
 * begins after all earlier streams have ended is another run of the job. The summary adds up all
 * runs.
 */
#ifndef HEADRACE_CLI_SUMMARY_SUMMARY_RUNS_H
#define HEADRACE_CLI_SUMMARY_SUMMARY_RUNS_H

#include "cli/summary/summary.h"

/* A stream, or several streams joined. Times are wall clock; 0: unknown. */
struct hr_run_part {
	uint64_t start_ns, end_ns;  /* start and end that headraced stored */
	uint64_t first_ns, last_ns; /* first and last time of a process or operation */
	bool running, unfinished, killed, failed;
};

struct hr_runs {
	struct hr_run_part *list;
	size_t n, room;
};

void hr_run_part_see(struct hr_run_part *part, uint64_t wall_ns);
void hr_run_part_join(struct hr_run_part *to, const struct hr_run_part *from);

/* Return the start and the end of the run, if they are known. */
uint64_t hr_run_part_start(const struct hr_run_part *part);
uint64_t hr_run_part_end(const struct hr_run_part *part);

int hr_runs_add(struct hr_runs *runs, const struct hr_run_part *stream); /* 0 or -ENOMEM */

/* Sets states and durations of the job and its last run. *ret_job: all runs. 0 or -ENOMEM. */
int hr_runs_take(struct hr_runs *runs, struct hr_summary *s, struct hr_run_part *ret_job);
void hr_runs_done(struct hr_runs *runs);

#endif

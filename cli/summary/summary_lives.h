/* SPDX-License-Identifier: Apache-2.0 */
/*
 * summary_lives.h - how long at least one process of a rank or DataLoader worker was alive
 *
 * The summary shows I/O time as a share of this time. Processes that overlap count once. Gaps
 * between processes do not count, because a worker has a new process each epoch.
 */
#ifndef HEADRACE_CLI_SUMMARY_SUMMARY_LIVES_H
#define HEADRACE_CLI_SUMMARY_SUMMARY_LIVES_H

#include "cli/summary/summary.h"

struct hr_life {
	int rank, worker;
	uint64_t start_ns, end_ns; /* wall clock; end_ns 0: the process is alive */
};

struct hr_lives {
	struct hr_life *list;
	size_t n, room;
};

int hr_lives_add(struct hr_lives *lives, const struct hr_life *life); /* 0 or -ENOMEM */

/* Sets life_ns of each rank and worker. Living processes count until now_ns. */
void hr_lives_sum(struct hr_lives *lives, uint64_t now_ns, struct hr_summary_who *who, size_t n);
void hr_lives_done(struct hr_lives *lives);

#endif

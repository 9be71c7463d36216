/* SPDX-License-Identifier: Apache-2.0 */
/*
 * summary_lives.h - how long each part of a job (a rank, a worker) had a process alive
 *
 * The summary shows the I/O time of a part as a share of this time. Processes that overlap count
 * once. Gaps between processes do not count, because a worker has a new process each epoch.
 * hr_lives_done frees the list.
 */
#ifndef HEADRACE_CLI_SUMMARY_SUMMARY_LIVES_H
#define HEADRACE_CLI_SUMMARY_SUMMARY_LIVES_H

#include "cli/summary/summary.h"

struct hr_life {
	int rank, worker;
	uint64_t start_ns, end_ns; /* wall clock; end 0: alive */
};

struct hr_lives {
	struct hr_life *list;
	size_t n, room;
};

int hr_lives_add(struct hr_lives *lives, const struct hr_life *life); /* 0 or -ENOMEM */

/* Sets life_ns of every part; living processes count until now_ns. */
void hr_lives_sum(struct hr_lives *lives, uint64_t now_ns, struct hr_summary_who *who, size_t n);
void hr_lives_done(struct hr_lives *lives);

#endif

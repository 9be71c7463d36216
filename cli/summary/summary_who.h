/* SPDX-License-Identifier: Apache-2.0 */
/*
 * summary_who.h - ranks and DataLoader workers: their lives, which are missing, which were killed
 *
 * The summary shows I/O time as a share of the time in which at least one process of a rank or
 * worker was alive. Processes that overlap count once. Gaps between processes do not count, because
 * a worker has a new process each epoch.
 */
#ifndef HEADRACE_CLI_SUMMARY_SUMMARY_WHO_H
#define HEADRACE_CLI_SUMMARY_SUMMARY_WHO_H

#include "cli/summary/summary.h"
#include "store/store.h"

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

/*
 * Sorts s->who by rank and worker, counts ranks, and lists missing and excluded ones. `world`: the
 * world size; 0: unknown.
 */
void hr_ranks_count(struct hr_summary *s, uint32_t world);

/* Counts the process if a signal ended it. Returns 0 or -ENOMEM. */
int hr_ends_add(struct hr_summary *s, const struct hr_process *process);
void hr_ends_free(struct hr_summary *s);

/* Writes the name of a signal to `out`: "SIGKILL", or "SIG40" if it has no name. Returns `out`. */
const char *hr_ends_signal(int number, char *out, size_t bytes);

#endif

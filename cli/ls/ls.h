/* SPDX-License-Identifier: Apache-2.0 */
/* ls.h - a row of `headrace ls`: a store and its last job, or a job that runs into a collector */
#ifndef HEADRACE_CLI_LS_LS_H
#define HEADRACE_CLI_LS_LS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "cli/stores.h"

/* Strings are malloc'ed, and contain unescaped names; NULL: unknown. */
struct hr_ls_row {
	char *store; /* path of the store, or addresses of collectors */
	char *job;   /* id of the last job in the store */
	char *state; /* state of the last run of this job, as in struct hr_summary */
	/* program of the first rank, else of the first process: "train.py" */
	char *program;
	size_t jobs;		    /* number of jobs in the store */
	uint64_t start_ns, span_ns; /* wall clock; 0: unknown */
	uint64_t bytes;		    /* size of the store */
	/* share of the time of training loops that they waited; below 0: unknown */
	double waited;
};

/*
 * Reads the last job of a store. Computes `waited` if the job has at most *events_left events, and
 * subtracts the number of its events from *events_left. An unreadable store gets the state
 * "unreadable".
 */
void hr_ls_read(const struct hr_found_store *store, uint64_t *events_left, struct hr_ls_row *ret);
void hr_ls_row_done(struct hr_ls_row *row);

#endif

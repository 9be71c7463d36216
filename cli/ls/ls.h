/* SPDX-License-Identifier: Apache-2.0 */
/* ls.h - a row of `headrace ls`: a store and its last job, or a job that runs into a collector */
#ifndef HEADRACE_CLI_LS_LS_H
#define HEADRACE_CLI_LS_LS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "cli/stores.h"

/* Strings are malloc'ed, and not escaped; NULL: unknown. */
struct hr_ls_row {
	char *store;		    /* path, or the collectors */
	char *job;		    /* the last job: its last run counts */
	char *state;		    /* as in hr_summary */
	char *program;		    /* of the first rank, or of the first process: "train.py" */
	size_t jobs;		    /* in the store */
	uint64_t start_ns, span_ns; /* wall clock; 0: unknown */
	uint64_t bytes;		    /* of the store, with all jobs */
	double waited;		    /* share of the training loops; below 0: unknown */
};

/*
 * Reads the last job of a store. Computes `waited` if the job has at most *events_left events, and
 * subtracts them. An unreadable store gets the state "unreadable".
 */
void hr_ls_read(const struct hr_found_store *store, uint64_t *events_left, struct hr_ls_row *ret);
void hr_ls_row_done(struct hr_ls_row *row);

/* `width`: width of the terminal in characters; 0: cuts nothing. */
void hr_ls_table(const struct hr_ls_row *rows, size_t n, unsigned width, FILE *out);

#endif

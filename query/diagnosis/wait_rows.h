/* SPDX-License-Identifier: Apache-2.0 */
/* wait_rows.h - what each wait for a batch was spent on, and which worker it waited for */
#ifndef HEADRACE_QUERY_DIAGNOSIS_WAIT_ROWS_H
#define HEADRACE_QUERY_DIAGNOSIS_WAIT_ROWS_H

#include "query/diagnosis/diagnosis.h"

/*
 * A part of a piece of a wait. Pieces of a wait follow each other: one ends where the worker of the
 * batch begins or ends a batch. The rows of a piece follow each other, and sum to it.
 */
struct hr_wait_row {
	const struct hr_train_life *life;
	const struct hr_block *piece;
	int64_t from, to;   /* of the wait */
	uint64_t batch;	    /* UINT64_MAX: none, or unknown */
	uint64_t maker;	    /* process that makes a batch meanwhile; 0: none, or unknown */
	uint32_t maker_tid; /* its thread */
	uint8_t part;
	uint64_t ns;
};

struct hr_wait_rows {
	struct hr_wait_row *rows;
	size_t n, room;
};

/* The caller frees the rows, also of a failure; they refer to `d`. -ENOMEM. */
int hr_wait_rows_make(const struct hr_diagnosis *d, struct hr_wait_rows *ret);

#endif

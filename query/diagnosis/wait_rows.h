/* SPDX-License-Identifier: Apache-2.0 */
/* wait_rows.h - what each wait for a batch was spent on, and which worker it waited for */
#ifndef HEADRACE_QUERY_DIAGNOSIS_WAIT_ROWS_H
#define HEADRACE_QUERY_DIAGNOSIS_WAIT_ROWS_H

#include "query/diagnosis/diagnosis.h"

/*
 * A wait is cut into pieces where the worker of its batch begins or ends a batch. A row has the
 * time of one part (parts.def) of one piece. The rows of a piece follow each other, and add up to
 * the piece.
 */
struct hr_wait_row {
	const struct hr_train_life *life;
	const struct hr_block *piece;
	int64_t from, to; /* start and end of the wait */
	uint64_t batch;	  /* UINT64_MAX: none, or unknown */
	/* the process that makes a batch during the piece; 0: none, or unknown */
	uint64_t maker;
	uint32_t maker_tid;
	uint8_t part;
	uint64_t ns;
};

struct hr_wait_rows {
	struct hr_wait_row *rows;
	size_t n, room;
};

/* Makes all rows, which refer to `d`. The caller frees them, also after a failure. -ENOMEM. */
int hr_wait_rows_make(const struct hr_diagnosis *d, struct hr_wait_rows *ret);
/* Makes only the rows of the longest wait of each job. */
int hr_wait_rows_longest(const struct hr_diagnosis *d, struct hr_wait_rows *ret);

#endif

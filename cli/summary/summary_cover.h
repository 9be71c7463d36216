/* SPDX-License-Identifier: Apache-2.0 */
/*
 * summary_cover.h - compares the I/O that the kernel saw with the recorded I/O (docs/probes.md)
 *
 * This compares the sums of each process, so extra records of one file can hide missing records of
 * another file. `headrace query STORE coverage` compares the sums of each file.
 */
#ifndef HEADRACE_CLI_SUMMARY_SUMMARY_COVER_H
#define HEADRACE_CLI_SUMMARY_SUMMARY_COVER_H

#include "cli/summary/summary.h"
#include "store/store.h"

struct hr_cover_cell;

struct hr_covers { /* Sums of the current stream. Zero this struct before the first stream. */
	struct hr_cover_cell *cells;
	bool probed;
};

/* Add a row of the stream. Return 0 or -ENOMEM. */
int hr_covers_rollup(struct hr_covers *c, const struct hr_stream *stream,
		     const Headrace__Rollup *row);
int hr_covers_kernel(struct hr_covers *c, const struct hr_stream *stream,
		     const Headrace__KernelRecord *row, struct hr_summary_cover *sum);

/* Call it at the end of a stream. If probes ran, adds what is not recorded. Resets the sums. */
void hr_covers_take(struct hr_covers *c, const struct hr_stream *stream,
		    struct hr_summary_cover *sum);
void hr_covers_done(struct hr_covers *c);

/* Prints the coverage, unless no probes ran. `store` is quoted. */
void hr_cover_print(const struct hr_summary_cover *cover, const char *store,
		    struct hr_sheet *sheet);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * summary_cover.h - compares reads and writes of the kernel with recorded ones (docs/probes.md)
 *
 * The comparison is per process, so extra records of one file may hide missing records of another.
 * `headrace query STORE coverage` compares per file.
 */
#ifndef HEADRACE_CLI_SUMMARY_SUMMARY_COVER_H
#define HEADRACE_CLI_SUMMARY_SUMMARY_COVER_H

#include "cli/summary/summary.h"
#include "store/store.h"

struct hr_cover_cell;

struct hr_covers { /* cells of the current stream; zero this struct before the first one */
	struct hr_cover_cell *cells;
	bool probed;
};

/* Add a row to its cell. Return 0 or -ENOMEM. */
int hr_covers_rollup(struct hr_covers *c, const struct hr_stream *stream,
		     const Headrace__Rollup *row);
int hr_covers_kernel(struct hr_covers *c, const struct hr_stream *stream,
		     const Headrace__KernelRecord *row, struct hr_summary_cover *sum);

/* Call it at the end of a stream. Adds what is unrecorded if probes ran, and resets the cells. */
void hr_covers_take(struct hr_covers *c, const struct hr_stream *stream,
		    struct hr_summary_cover *sum);
void hr_covers_done(struct hr_covers *c);

/* Prints nothing if no probes ran. `store` is quoted. */
void hr_cover_print(const struct hr_summary_cover *cover, const char *store,
		    struct hr_sheet *sheet);

#endif

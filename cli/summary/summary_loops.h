/* SPDX-License-Identifier: Apache-2.0 */
/*
 * summary_loops.h - how long training loops waited for batches
 *
 * `headrace query STORE input-wait` has details per rank.
 */
#ifndef HEADRACE_CLI_SUMMARY_SUMMARY_LOOPS_H
#define HEADRACE_CLI_SUMMARY_SUMMARY_LOOPS_H

#include "cli/summary/summary.h"
#include "common/region.h"

/* Adds a region of a rank or worker. */
void hr_loop_add(struct hr_summary_loop *loop, const struct hr_region *region);

/* Returns whether a training loop was recorded. */
bool hr_loops_any(const struct hr_summary *s);

/* Prints how much of the training loop waited for data: the verdict, as a sentence. */
void hr_loops_print(const struct hr_summary *s, struct hr_sheet *sheet);

/* Prints bars of the time of the training loops, if the parts are known. */
void hr_loops_draw(const struct hr_summary *s, struct hr_sheet *sheet);

#endif

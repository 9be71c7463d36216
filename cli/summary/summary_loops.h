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

/* Adds a region that a process of the rank reported. */
void hr_loop_add(struct hr_summary_loop *loop, const struct hr_region *region);

bool hr_loops_any(const struct hr_summary *s);

/* Prints a sentence: how long the training loops waited for data. */
void hr_loops_print(const struct hr_summary *s, struct hr_sheet *sheet);

/* Draws a bar for each part of the time of the training loops, if the parts are known. */
void hr_loops_draw(const struct hr_summary *s, struct hr_sheet *sheet);

#endif

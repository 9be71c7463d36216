/* SPDX-License-Identifier: Apache-2.0 */
/*
 * summary_loops.h - how long training loops waited for their batches: the summary's line of what `headrace query STORE input-wait`
 * says rank by rank
 */
#ifndef HEADRACE_CLI_SUMMARY_SUMMARY_LOOPS_H
#define HEADRACE_CLI_SUMMARY_SUMMARY_LOOPS_H

#include "cli/summary/summary.h"
#include "common/region.h"

/* A region of somebody. */
void hr_loop_add(struct hr_summary_loop *loop, const struct hr_region *region);

/* Nothing where nobody waited. `store`: quoted. */
void hr_loops_print(const struct hr_summary *s, const char *store, FILE *out);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* summary_ranks.h - sorts s->who by rank and worker; finds missing and excluded ranks */
#ifndef HEADRACE_CLI_SUMMARY_SUMMARY_RANKS_H
#define HEADRACE_CLI_SUMMARY_SUMMARY_RANKS_H

#include "cli/summary/summary.h"

/* Counts ranks, and lists missing and excluded ones. `world`: the world size; 0: unknown. */
void hr_ranks_count(struct hr_summary *s, uint32_t world);

#endif

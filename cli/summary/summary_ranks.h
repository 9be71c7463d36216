/* SPDX-License-Identifier: Apache-2.0 */
/* summary_ranks.h - orders parts by rank and worker; finds missing and excluded ranks */
#ifndef HEADRACE_CLI_SUMMARY_SUMMARY_RANKS_H
#define HEADRACE_CLI_SUMMARY_SUMMARY_RANKS_H

#include "cli/summary/summary.h"

/*
 * Sets lists and counts of ranks. `world`: world size in the environment of processes; 0: unknown.
 */
void hr_ranks_count(struct hr_summary *s, uint32_t world);

#endif

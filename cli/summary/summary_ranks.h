/* SPDX-License-Identifier: Apache-2.0 */
/*
 * summary_ranks.h - which ranks exist, were excluded, and are missing
 *
 * Purpose   Orders a summary's parts by rank and worker, and counts them.
 * Owner     What it makes belongs to the summary.
 * Threads   One.
 */
#ifndef HEADRACE_CLI_SUMMARY_SUMMARY_RANKS_H
#define HEADRACE_CLI_SUMMARY_SUMMARY_RANKS_H

#include "cli/summary/summary.h"

/* `world`: the world size in the environment of processes, 0: none. */
void hr_ranks_count(struct hr_summary *s, uint32_t world);

#endif

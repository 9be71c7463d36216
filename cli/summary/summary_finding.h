/* SPDX-License-Identifier: Apache-2.0 */
/* summary_finding.h - finds and prints the largest loss of a training job */
#ifndef HEADRACE_CLI_SUMMARY_SUMMARY_FINDING_H
#define HEADRACE_CLI_SUMMARY_SUMMARY_FINDING_H

#include "cli/summary/summary.h"
#include "query/diagnosis/diagnosis.h"

/* Adds the times of a process (its waits and its loops) to wait_ns and loop_ns. */
void hr_loop_add_life(struct hr_summary_loop *l, const struct hr_part_sums *sums);

/*
 * Sets the finding, the parts, the times of loops, and the bytes read for batches. Set s->events,
 * who, files and folders first. Reads all events, but does nothing if this would take more than
 * about a second. Returns 0 or -ENOMEM.
 */
int hr_summary_diagnose(struct hr_summary *s, const struct hr_catalog *catalog);
void hr_summary_finding_free(struct hr_summary_finding *f);

/* Prints the finding, if there is one. */
void hr_summary_finding_print(const struct hr_summary *s, struct hr_sheet *sheet);

#endif

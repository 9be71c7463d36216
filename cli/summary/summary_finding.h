/* SPDX-License-Identifier: Apache-2.0 */
/* summary_finding.h - why a training job lost time, and what to change: its largest loss */
#ifndef HEADRACE_CLI_SUMMARY_SUMMARY_FINDING_H
#define HEADRACE_CLI_SUMMARY_SUMMARY_FINDING_H

#include "cli/summary/summary.h"
#include "query/diagnosis/diagnosis.h"

/* Adds the waits and the loops of a life to wait_ns and loop_ns. */
void hr_loop_add_life(struct hr_summary_loop *l, const struct hr_part_sums *sums);

/*
 * Sets the finding, the parts, the times of loops, and what was read for batches. Needs s->events,
 * who, files and folders. Reads all events unless this takes more than about a second; in this
 * case, sets nothing. Of several attempts, the finding is that of the last one. 0 or -ENOMEM.
 */
int hr_summary_diagnose(struct hr_summary *s, const struct hr_catalog *catalog);
void hr_summary_finding_free(struct hr_summary_finding *f);

/* Prints nothing if there is no finding. */
void hr_summary_finding_print(const struct hr_summary *s, struct hr_sheet *sheet);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* summary_ends.h - processes that a signal ended; the summary has their list */
#ifndef HEADRACE_CLI_SUMMARY_SUMMARY_ENDS_H
#define HEADRACE_CLI_SUMMARY_SUMMARY_ENDS_H

#include "cli/summary/summary.h"
#include "store/store.h"

/* Counts the process if a signal ended it. 0 or -ENOMEM. */
int hr_ends_add(struct hr_summary *s, const struct hr_process *process);
void hr_ends_free(struct hr_summary *s);

/* "SIGKILL", as in processes.exit; "SIG40" for a signal without a name. Returns `out`. */
const char *hr_ends_signal(int number, char *out, size_t bytes);

#endif

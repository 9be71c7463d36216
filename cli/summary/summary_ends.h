/* SPDX-License-Identifier: Apache-2.0 */
/* summary_ends.h - counts processes that a signal ended */
#ifndef HEADRACE_CLI_SUMMARY_SUMMARY_ENDS_H
#define HEADRACE_CLI_SUMMARY_SUMMARY_ENDS_H

#include "cli/summary/summary.h"
#include "store/store.h"

/* Counts the process if a signal ended it. Returns 0 or -ENOMEM. */
int hr_ends_add(struct hr_summary *s, const struct hr_process *process);
void hr_ends_free(struct hr_summary *s);

/* Writes the name of a signal to `out`: "SIGKILL", or "SIG40" if it has no name. Returns `out`. */
const char *hr_ends_signal(int number, char *out, size_t bytes);

#endif

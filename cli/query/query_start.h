/* SPDX-License-Identifier: Apache-2.0 */
/* query_start.h - what `headrace query` prints if the user gives no question */
#ifndef HEADRACE_CLI_QUERY_QUERY_START_H
#define HEADRACE_CLI_QUERY_QUERY_START_H

/*
 * On a terminal, prints questions for this store, and how to ask others. Elsewhere, reports that
 * the question is missing. `store`: NULL: a collector. `typed`: the store as it is to appear in
 * the commands, "" if it may be left out. Returns the exit status.
 */
int hr_query_start(const char *store, const char *typed);

#endif

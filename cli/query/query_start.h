/* SPDX-License-Identifier: Apache-2.0 */
/* query_start.h - what `headrace query` prints if the user gives no question */
#ifndef HEADRACE_CLI_QUERY_QUERY_START_H
#define HEADRACE_CLI_QUERY_QUERY_START_H

/*
 * On a terminal, prints suggested commands for this store. Otherwise, reports that the question is
 * missing. `store` NULL: a collector. `typed`: the text for the store in the commands; "": the
 * commands need none. Returns the exit status.
 */
int hr_query_start(const char *store, const char *typed);

#endif

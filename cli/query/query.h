/* SPDX-License-Identifier: Apache-2.0 */
/* query.h - `headrace query`  */
#ifndef HEADRACE_CLI_QUERY_QUERY_H
#define HEADRACE_CLI_QUERY_QUERY_H

#include "cli/query/query_request.h"

/* Checks and answers a request with stores and words (query_operands.h). Returns an exit status. */
int hr_query_answer(struct hr_query_request *r);

/*
 * NULL, or a function that is called with each store before the store is opened. It adds the data
 * in the journal of a killed private headraced to the store. It returns 0 or -errno; *ret_note
 * (malloc'ed or NULL) is printed to the user.
 */
extern int (*hr_query_recover)(const char *store, char **ret_note);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* query.h - `headrace query`  */
#ifndef HEADRACE_CLI_QUERY_QUERY_H
#define HEADRACE_CLI_QUERY_QUERY_H

#include "cli/query/query_request.h"

/*
 * Checks the request, whose stores and words are set (query_operands.h), and answers it. Returns
 * the exit status.
 */
int hr_query_answer(struct hr_query_request *r);

/*
 * If set, this function is called with each store before the store is opened. It stores the data
 * that the journal of a killed private headraced contains. *ret_note (malloc'ed or NULL) is printed
 * to the user. -errno: it failed.
 */
extern int (*hr_query_recover)(const char *store, char **ret_note);

#endif

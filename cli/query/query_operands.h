/* SPDX-License-Identifier: Apache-2.0 */
/*
 * query_operands.h - which operands of a query are stores, and which are its question
 *
 *      headrace query [STORE...] NAME [ARG...]      a store may also follow the NAME
 *      headrace query [STORE...] 'SQL'
 *
 * The functions return 0, or the exit status after they have reported a mistake.
 */
#ifndef HEADRACE_CLI_QUERY_QUERY_OPERANDS_H
#define HEADRACE_CLI_QUERY_QUERY_OPERANDS_H

#include "cli/query/query_request.h"

/* r->words contains all operands. Moves those that are stores to r->stores. */
int hr_operands_sort(struct hr_query_request *r);

/*
 * Checks stores and words, and resolves the question. Leaves out operands that are no stores, and
 * takes the newest store of the working directory if none was given.
 */
int hr_operands_check(struct hr_query_request *r);

/* Takes the newest store of the working directory if no store was given. */
int hr_operands_newest(struct hr_query_request *r);

#endif

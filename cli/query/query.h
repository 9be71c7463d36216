/* SPDX-License-Identifier: Apache-2.0 */
/*
 * query.h - `headrace query`
 */
#ifndef HEADRACE_CLI_QUERY_QUERY_H
#define HEADRACE_CLI_QUERY_QUERY_H

/*
 * Called with each store before it is opened, when main has set it: takes what the journal of a
 * killed private daemon still holds into the store. *ret_note (malloc'ed, may stay NULL) is printed
 * to the user. Negative errno: it failed.
 */
extern int (*hr_query_recover)(const char *store, char **ret_note);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * query_remote.h - sends a query to a collector, writes the answer, prints the notes
 *
 * libuv's threads write the answer, so that a pausing reader (`| less`) delays only the
 * collector's child.
 */
#ifndef HEADRACE_CLI_QUERY_QUERY_REMOTE_H
#define HEADRACE_CLI_QUERY_QUERY_REMOTE_H

#include "cli/query/query_request.h"
#include "common/outfile.h"

/* Returns the exit status. `file`: the file of -o; unused if there is no -o. */
int hr_query_remote(const struct hr_query_request *request, const struct hr_outfile *file);

#endif

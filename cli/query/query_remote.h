/* SPDX-License-Identifier: Apache-2.0 */
/*
 * query_remote.h - a query of a collector
 *
 * Purpose   The client's side of a query (proto/wire.proto): sends the query, writes the answer as
 *           it arrives, prints the notes.
 * Owner     The request and the file are the caller's.
 * Threads   One, with a loop of its own; libuv's threads write to the output, so that a reader that
 *           pauses (`| less`) delays only the collector's child.
 */
#ifndef HEADRACE_CLI_QUERY_QUERY_REMOTE_H
#define HEADRACE_CLI_QUERY_QUERY_REMOTE_H

#include "cli/query/query_request.h"
#include "common/outfile.h"

/* Returns the exit status. `width`: of the terminal. `file`: of -o, prepared. */
int hr_query_remote(const struct hr_query_request *request, unsigned width,
		    const struct hr_outfile *file);

#endif

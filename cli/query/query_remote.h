/* SPDX-License-Identifier: Apache-2.0 */
/*
 * query_remote.h - asking a collector
 *
 * Purpose   The client's side of a query (proto/wire.proto): sends the question, writes the answer as it comes, says the notes.
 * Owner     The request and the file are the caller's.
 * Threads   One, with a loop of its own; libuv's threads write to the output, so that a reader who does not read (`| less`) holds
 *           up the collector's child and nothing else.
 */
#ifndef HEADRACE_CLI_QUERY_QUERY_REMOTE_H
#define HEADRACE_CLI_QUERY_QUERY_REMOTE_H

#include "cli/query/query_request.h"
#include "common/outfile.h"

/* The exit status. `width`: of the terminal. `file`: of -o, planned. */
int hr_query_remote(const struct hr_query_request *request, unsigned width,
		    const struct hr_outfile *file);

#endif

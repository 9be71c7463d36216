/* SPDX-License-Identifier: Apache-2.0 */
/*
 * query_request.h - what `headrace query` is asked to do
 *
 * Purpose   The command line, from words to a request: which stores, which question, which format;
 *           says what is wrong with it.
 * Owner     Texts are the command line's; hr_request_done() frees the rest.
 * Threads   One.
 */
#ifndef HEADRACE_CLI_QUERY_QUERY_REQUEST_H
#define HEADRACE_CLI_QUERY_QUERY_REQUEST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "query/ask.h"
#include "net/address.h"

struct hr_query_request {
	const char **stores;
	size_t n_stores;
	bool remote; /* one collector in place of stores */
	struct hr_address collector;
	const char *job; /* NULL: all */
	enum hr_ask_format format;
	const char *output; /* NULL: standard output */
	uint64_t memory_bytes;
	unsigned threads;
	uint64_t limit_ns; /* of time; 0: none */
	bool progress;	   /* also where standard error is no terminal */
	char **words;	   /* SQL, or a NAME and its arguments, as typed */
	size_t n_words;
	struct hr_question question; /* what they come to; of a collector's own NAME: nothing */
};

/*
 * 0 to go on; 1 when that was all, after --help and its like or a mistake that was said, with
 * *ret_status the exit status.
 */
int hr_request_parse(int argc, char **argv, struct hr_query_request *ret, int *ret_status);
void hr_request_done(struct hr_query_request *r);

#endif

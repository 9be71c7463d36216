/* SPDX-License-Identifier: Apache-2.0 */
/*
 * query_request.h - the command line of `headrace query`: stores, query, format
 *
 * Texts belong to the command line; hr_request_done() frees everything else.
 */
#ifndef HEADRACE_CLI_QUERY_QUERY_REQUEST_H
#define HEADRACE_CLI_QUERY_QUERY_REQUEST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "query/ask.h"
#include "net/address.h"

struct hr_query_request {
	const char **stores; /* with room for one more than was given */
	size_t n_stores;
	char *newest; /* the store that was taken because none was given; NULL: none */
	bool remote;  /* a collector instead of stores */
	struct hr_address collector;
	const char *job; /* NULL: all */
	char *last_run;	 /* the job, if headrace chose it; NULL: it did not */
	enum hr_ask_format format;
	struct hr_shown_style style;
	char *folder;	    /* the text of style.folder */
	const char *output; /* NULL: standard output */
	uint64_t memory_bytes;
	unsigned threads;
	uint64_t limit_ns; /* time limit; 0: none */
	bool progress;	   /* shows progress also without a terminal */
	char **words;	   /* SQL, or a NAME and its arguments, as typed */
	size_t n_words;
	/* the resolved words; empty if only the collector has the NAME */
	struct hr_question question;
};

/* Reports mistakes. */
extern const struct hr_sink hr_request_messages;

/* 0: continue; 1: *ret_status is the exit status, after --help or a reported mistake. */
int hr_request_parse(int argc, char **argv, struct hr_query_request *ret, int *ret_status);
void hr_request_done(struct hr_query_request *r);

#endif

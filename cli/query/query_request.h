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
#include <stdio.h>

#include "export/export.h"
#include "query/ask.h"
#include "net/address.h"

struct hr_query_request {
	const char **stores; /* has room for one more store */
	size_t n_stores;
	char *newest; /* the newest store, if the user gave none; else NULL */
	bool remote;  /* the only store is a collector */
	struct hr_address collector;
	const char *job; /* NULL: all jobs */
	char *last_run;	 /* job of the last run, if the answer is limited to this run; else NULL */
	enum hr_ask_format format;
	struct hr_shown_style style;
	char *folder;	    /* memory of style.folder */
	const char *output; /* NULL: standard output */
	FILE *into;	    /* a file in memory that gets the answer instead; NULL: none */
	/* An unfinished folder with the output, which is removed if a signal ends the process. */
	const char *folder_partial;
	uint64_t memory_bytes;
	unsigned threads;
	uint64_t limit_ns;
	bool progress; /* show progress also if standard error is no terminal */
	char **words;  /* SQL, or the NAME of a query and its arguments, as typed */
	size_t n_words;
	/* The answer is an export with these options, which `words` has, too. NULL: a query. */
	const struct hr_export_options *export;
	bool list;	    /* list the named queries instead of an answer */
	bool without_notes; /* do not print which data the answer lacks */
	/* Print this named query instead of an answer. NULL: none. */
	const char *explain;
	/* the resolved words; empty if only the collector has the NAME */
	struct hr_question question;
};

/* Prints the names of queries, and what each answers, as JSON or as text. */
void hr_request_list(const struct hr_named *list, enum hr_ask_format format);

/* Reports mistakes in a request to the user. */
extern const struct hr_sink hr_request_messages;

/* Returns 0 to continue, or 1 to end with *ret_status (after --help or a reported mistake). */
int hr_request_parse(int argc, char **argv, struct hr_query_request *ret, int *ret_status);
void hr_request_done(struct hr_query_request *r);

#endif

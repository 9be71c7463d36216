/* SPDX-License-Identifier: Apache-2.0 */
/*
 * query.h - `headrace query`, and questions of other commands
 *
 *      headrace query [STORE...] NAME [ARG...]      a store may also follow the NAME
 *      headrace query [STORE...] 'SQL'
 *
 * Texts of a request belong to the command line; hr_request_done() frees everything else.
 */
#ifndef HEADRACE_CLI_QUERY_QUERY_H
#define HEADRACE_CLI_QUERY_QUERY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "common/outfile.h"
#include "export/export.h"
#include "net/address.h"
#include "query/ask.h"

/* ---- the command line (query_request.c) ---- */

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

/*
 * ---- stores and question (query_operands.c) ----
 *
 * The functions return 0, or the exit status after they have reported a mistake.
 */

/* r->words contains all operands. Moves those that are stores to r->stores. */
int hr_operands_sort(struct hr_query_request *r);

/*
 * Checks stores and words, and resolves the question. Leaves out operands that are no stores, and
 * takes the newest store of the working directory if none was given.
 */
int hr_operands_check(struct hr_query_request *r);

/* Takes the newest store of the working directory if no store was given. */
int hr_operands_newest(struct hr_query_request *r);

/* ---- answers (query.c) ---- */

/* Checks and answers a request with stores and words. Returns an exit status. */
int hr_query_answer(struct hr_query_request *r);

/*
 * NULL, or a function that is called with each store before the store is opened. It adds the data
 * in the journal of a killed private headraced to the store. It returns 0 or -errno; *ret_note
 * (malloc'ed or NULL) is printed to the user.
 */
extern int (*hr_query_recover)(const char *store, char **ret_note);

/* Reports that the output cannot be written. `err`: -errno. Returns HR_ASK_FAILED. */
int hr_query_report_output(const struct hr_query_request *r, int err);

/*
 * Without a question (query_start.c). On a terminal, prints suggested commands for this store.
 * Otherwise, reports that the question is missing. `store` NULL: a collector. `typed`: the text for
 * the store in the commands; "": the commands need none. Returns the exit status.
 */
int hr_query_start(const char *store, const char *typed);

/*
 * Sends a query to a collector, writes the answer, prints the notes (query_remote.c). libuv's
 * threads write the answer, so that a pausing reader (`| less`) delays only the collector's child.
 * Returns the exit status. `file`: the file of -o; unused if there is no -o.
 */
int hr_query_remote(const struct hr_query_request *request, const struct hr_outfile *file);

/* ---- an answer as rows of texts, for commands that compute with it (query_rows.c) ---- */

/* The texts are those of --format csv. NULL: the value is NULL. */
struct hr_answer_rows {
	char *text; /* memory of all cells */
	char **cells;
	size_t n_columns, n_rows; /* without the row of the columns' names */
	size_t room;
};

static inline char *hr_rows_cell(const struct hr_answer_rows *rows, size_t row, size_t column)
{
	return rows->cells[row * rows->n_columns + column];
}

/*
 * Runs the question `words` on the stores and the job of `r`, which it leaves as it was. Reports
 * failures, as what `headrace <command>` cannot do. Returns an exit status.
 */
int hr_rows_read(const struct hr_query_request *r, char *const *words, size_t n_words,
		 const char *command, struct hr_answer_rows *ret);

void hr_rows_done(struct hr_answer_rows *rows); /* accepts a zeroed one */

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ask.h - one query, from opening the stores to the answer and its notes
 *
 * `headrace query` and the child processes of a collector use it. The struct hr_ask must outlive
 * the struct hr_asking. Any thread may call hr_asking_interrupt and hr_asking_scan between
 * hr_ask_open and hr_asking_close.
 */
#ifndef HEADRACE_QUERY_ASK_H
#define HEADRACE_QUERY_ASK_H

#include <stdint.h>
#include <stdio.h>

#include "query/question.h"
#include "query/shown.h"
#include "query/sink.h"
#include "store/store.h"

enum hr_ask_status {
	HR_ASK_ANSWERED = 0,
	HR_ASK_FAILED = 1,
	HR_ASK_USAGE = 2,
	HR_ASK_NO_STORE = 66,	 /* no such store or job */
	HR_ASK_NO_DUCKDB = 69,	 /* EX_UNAVAILABLE */
	HR_ASK_UNAVAILABLE = 69, /* no collector answers */
	HR_ASK_INTERRUPTED = 130
};

enum hr_ask_format {
	HR_FORMAT_TEXT,
	HR_FORMAT_LIST,
	HR_FORMAT_JSON,
	HR_FORMAT_CSV,
	HR_FORMAT_ARROW,
	HR_FORMAT_PARQUET
};

/* Returns false if there is no format with this name. */
bool hr_ask_format(const char *name, enum hr_ask_format *ret);
const char *hr_ask_format_name(enum hr_ask_format format);

struct hr_ask {
	const char *const *stores;
	size_t n_stores;
	const char *where; /* the name of the stores in messages; NULL: their paths as given */
	struct hr_catalog_filter filter;
	const struct hr_question *question;
	enum hr_ask_format format;
	struct hr_shown_style style;
	const char *parquet; /* output file of HR_FORMAT_PARQUET */
	uint64_t memory_bytes;
	unsigned threads;
	const char *spill; /* folder for temporary files, created when needed; NULL: none */
	uint64_t spill_bytes;
	uint64_t now_ns, silent_ns; /* as in struct hr_query_options */
	/*
	 * Replays the journal of a killed private headraced. hr_ask_open calls it for each store
	 * before it opens the store. *ret_note is a note for the user (malloc'ed), or NULL. Returns
	 * 0 or -errno. NULL: journals are not replayed.
	 */
	int (*recover)(const char *store, char **ret_note);
	struct hr_sink messages;
};

struct hr_asking;

/* Opens the stores. On success, returns HR_ASK_ANSWERED and *ret. Otherwise, prints a message. */
enum hr_ask_status hr_ask_open(const struct hr_ask *a, struct hr_asking **ret);

/* Runs the query. Writes the answer to `to` or the Parquet file, and the notes to `messages`. */
enum hr_ask_status hr_asking_answer(struct hr_asking *s, FILE *to);

/*
 * Interrupts the current statement. Call it again until hr_asking_answer returns, because an answer
 * can take several statements.
 */
void hr_asking_interrupt(struct hr_asking *s);
void hr_asking_scan(struct hr_asking *s, struct hr_query_scan *ret);
uint64_t hr_asking_rows(const struct hr_asking *s); /* number of rows; 0 for Parquet */
void hr_asking_close(struct hr_asking *s);

/* ---- for exports, which write another answer than hr_asking_answer (export/export.h) ---- */
const struct hr_catalog *hr_asking_catalog(const struct hr_asking *s);
struct hr_query *hr_asking_query(struct hr_asking *s);
const struct hr_sink *hr_asking_messages(const struct hr_asking *s);
const char *hr_asking_spill(const struct hr_asking *s); /* folder for temporary files, or NULL */

/* Sets what hr_asking_scan returns: `done` of `total`. Returns false after an interrupt. */
bool hr_asking_advance(struct hr_asking *s, uint64_t done, uint64_t total);

#endif

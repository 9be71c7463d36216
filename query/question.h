/* SPDX-License-Identifier: Apache-2.0 */
/*
 * question.h - makes a statement from the words of a query: SQL, or a name and its arguments
 *
 * Prints a message about a mistake. The words must outlive the struct hr_question.
 */
#ifndef HEADRACE_QUERY_QUESTION_H
#define HEADRACE_QUERY_QUESTION_H

#include <stdbool.h>
#include <stddef.h>

#include "query/named.h"
#include "query/sink.h"
#include "common/near.h"

struct hr_question {
	struct hr_named named; /* the named query, or the SQL statement itself */
	/* The arguments of a named query, or of SQL that has the header of one (named.h). */
	struct hr_named_args args;
};

bool hr_question_is_name(const char *word);

/* Makes a question of at least one word. Returns false and prints a message if it is wrong. */
bool hr_question_init(struct hr_question *q, char *const *words, size_t n_words,
		      const struct hr_sink *messages);
void hr_question_done(struct hr_question *q);

/*
 * Reports that the word in `near` is no named query, and suggests a similar name or lists all.
 * `near` may already have other candidates. `what`: "query" or "query or store".
 */
void hr_question_no_name(struct hr_near *near, const char *what, const struct hr_sink *messages);

#endif

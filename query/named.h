/* SPDX-License-Identifier: Apache-2.0 */
/*
 * named.h - named queries: query/named/NAME.sql, embedded when built
 *
 * Purpose   Each file is plain SQL with a header that describes its answer, arguments and columns:
 *
 *               -- what the query answers, in one line
 *               -- arg NAME TYPE DEFAULT: what it means
 *               -- known NAME: SELECT the values in the store for that argument
 *               -- note: SELECT a line of text for each thing that the answer lacks
 *               -- column NAME, NAME: what they contain
 *               -- text: each row is a line                       (instead of a table)
 *               -- shown: NAME NAME    the columns of a table, most important first (shown.h)
 *               -- fold: NAME          last rows, each under 1 % of its sum, become one line
 *
 *           TYPE is VARCHAR, BIGINT, DOUBLE, either of these with limits as BIGINT[0,1024], COUNT (a
 *           BIGINT from 1 on), SECONDS (a DOUBLE from a microsecond on), SIZE (64GiB), PAIR (/A=/B),
 *           allowed words as one|two|three, or PATH; relative paths are made absolute.
 *           DEFAULT may be NULL, or REQUIRED for an argument without a default. `known` runs
 *           if an answer is empty. Arguments are bound as parameters ($NAME).
 */
#ifndef HEADRACE_QUERY_NAMED_H
#define HEADRACE_QUERY_NAMED_H

#include "query/query.h"
#include "query/sink.h"

struct hr_named {
	const char *name;
	const char *sql;
};

/* Sorted by name; ends with a NULL name. */
extern const struct hr_named hr_named_list[];

/* One element each: the SQL of macros.sql, and that of notes.sql. */
extern const struct hr_named hr__macros_list[], hr__notes_list[];
/* Prints the SQL that creates all macros. */
void hr__macros_print(FILE *to);

/*
 * The verdicts of queries (NAME.verdict.sql), with the names NAME; ends with a NULL name. A verdict
 * selects lines of text from the table `answer`, which contains the query's rows. Each line has a
 * share that determines its colour.
 */
extern const struct hr_named hr__verdict_list[];

/* Returns the query with this name in a list that ends with a NULL name, or NULL. */
const struct hr_named *hr_named_in(const struct hr_named *list, const char *name);
const struct hr_named *hr_named_find(const char *name); /* in hr_named_list */

/*
 * hr_named_line returns the rest of the first header line that begins with `prefix`, which ends
 * with '\n', or NULL; hr_named_next that of the next one. `after`: what it returned last, or NULL.
 */
const char *hr_named_line(const struct hr_named *q, const char *prefix);
const char *hr_named_next(const struct hr_named *q, const char *prefix, const char *after);

void hr_named_about(const struct hr_named *q, const char **ret_text, size_t *ret_n);

#define HR_NAMED_ARGS 16u
struct hr_named_args {
	const struct hr_named *query;
	struct hr_query_arg list[HR_NAMED_ARGS];
	const char *types[HR_NAMED_ARGS]; /* the TYPE in the header */
	bool given[HR_NAMED_ARGS]; /* the user gave a value; otherwise, the default is used */
	bool required[HR_NAMED_ARGS];
	size_t n;
	bool text;
	char *texts[4 * HR_NAMED_ARGS]; /* the memory of the texts in `list` and `types` */
	size_t n_texts;
};

/*
 * Makes the arguments from the defaults and `words`. A word is `name=value`, or the value of the
 * next argument in the header. Returns 0, -ENOMEM, or -EINVAL and *ret_error (malloc'ed).
 */
int hr_named_args_init(const struct hr_named *q, char *const *words, size_t n_words,
		       struct hr_named_args *ret, char **ret_error);
/* Makes the arguments with their defaults only. Returns 0, -ENOMEM or -EINVAL. */
int hr_named_args_declare(const struct hr_named *q, struct hr_named_args *ret);
void hr_named_args_done(struct hr_named_args *a);

/*
 * Explains an empty answer: reports each argument whose value does not occur in the store, and some
 * values that do. Returns 0 or the error of hr_query_run.
 */
int hr_named_absent(struct hr_query *q, const struct hr_named_args *a,
		    const struct hr_sink *messages);

#endif

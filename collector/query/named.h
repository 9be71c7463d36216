/* SPDX-License-Identifier: Apache-2.0 */
/*
 * named.h - queries that have a name: collector/query/named/NAME.sql, embedded when built
 *
 * Purpose   Each is plain SQL with a header that says what it answers, its arguments and its
 *           columns:
 *
 *               -- what it answers, in one line
 *               -- arg NAME TYPE DEFAULT: what it means
 *               -- column NAME: what it holds
 *
 *           TYPE is VARCHAR, BIGINT or DOUBLE; DEFAULT may be NULL. Arguments are bound as
 *           parameters ($NAME), never pasted into the text.
 * Threads   Constant data; struct hr_named_args belongs to its caller.
 */
#ifndef HEADRACE_QUERY_NAMED_H
#define HEADRACE_QUERY_NAMED_H

#include "collector/query/query.h"

struct hr_named {
	const char *name;
	const char *sql;
};

/* In the order of their names, ended by a NULL name. */
extern const struct hr_named hr_named_list[];

/* The query behind hr_query_notes(). */
extern const struct hr_named hr__notes_list[];

const struct hr_named *hr_named_find(const char *name); /* NULL: there is none */

/* The first line of its header. */
void hr_named_about(const struct hr_named *q, const char **ret_text, size_t *ret_n);

#define HR_NAMED_ARGS 16u
struct hr_named_args {
	struct hr_query_arg list[HR_NAMED_ARGS];
	size_t n;
	char *texts[3 * HR_NAMED_ARGS]; /* what `list` points to */
	size_t n_texts;
};

/*
 * The arguments of a query: its defaults, overridden by words, each `name=value` or the value of
 * the next argument in the header's order. Errors: -EINVAL with *ret_error (malloc'ed), -ENOMEM.
 */
int hr_named_args_init(const struct hr_named *q, char *const *words, size_t n_words,
		       struct hr_named_args *ret, char **ret_error);
void hr_named_args_done(struct hr_named_args *a);

#endif

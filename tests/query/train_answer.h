/* SPDX-License-Identifier: Apache-2.0 */
/*
 * train_answer.h - answers of named queries over the store of train_store.h, cell by cell
 *
 * Owner     The test: `job` and `fix` are its group's. Threads: one.
 */
#ifndef HEADRACE_TESTS_QUERY_TRAIN_ANSWER_H
#define HEADRACE_TESTS_QUERY_TRAIN_ANSWER_H

#include "tests/query/fixture.h"
#include "tests/query/train_store.h"

extern struct train *job;
int train_setup(void **state); /* makes it, and opens it as `fix` */
int train_teardown(void **state);

#define ANSWER_COLUMNS 32u

struct answer {
	char *text, *at;
	char *header[ANSWER_COLUMNS], *cells[ANSWER_COLUMNS];
	size_t n_columns;
};

struct answer answer_ask(const char *name, char *a, char *b, char *c);
bool answer_next(struct answer *r); /* its next row; false: there is none, and it is freed */
const char *answer_cell(const struct answer *r, const char *column);
double answer_number(const struct answer *r, const char *column);

/* Assert what a cell is; seconds are given as nanoseconds. */
void answer_near(const struct answer *r, const char *column, double should);
void answer_ns(const struct answer *r, const char *column, uint64_t ns);
void answer_text(const struct answer *r, const char *column, const char *should);

/* median_s, p95_s, max_s of a thread's regions of a kind. */
void answer_lengths(const struct answer *r, enum train_task task, uint32_t kind);

/* How many lines the notes of a named query are; the first ones are in answer_said. */
extern char answer_said[4][512];
unsigned answer_notes(struct fixture *f, const char *name);

/* Of a store without regions, the query has no rows, and one note that begins with these words. */
void answer_lacks(const char *name, const char *note);

#endif

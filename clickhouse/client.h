/* SPDX-License-Identifier: Apache-2.0 */
/*
 * client.h - questions to ClickHouse and inserts, over its HTTP interface
 *
 * Owner     The caller. The target must stay valid.
 * Threads   A client belongs to one thread, which waits for the answers.
 * Errors    *ret_error (malloc'ed) names the server and its answer. An answer that cannot be from
 *           ClickHouse (a web page, garbage) is an error, even if its status is 200.
 *
 * A question goes to the replicas of a shard, one after the other, until one answers. An insert
 * is sent once: after an error, the next one goes to another replica, in a new generation (sink.h).
 */
#ifndef HEADRACE_CLICKHOUSE_CLIENT_H
#define HEADRACE_CLICKHOUSE_CLIENT_H

#include "clickhouse/block.h"
#include "clickhouse/target.h"
#include "net/web.h"

/*
 * The oldest release of ClickHouse that can answer questions: views.sql, clickhouse/fleet/ and the
 * dashboard use its SQL. Inserts and the questions of a collector (sink.h) also work with 18.16.
 */
#define HR_CH_ANSWERS_FROM 23u

struct hr_ch_client;

/* `stop`: see hr_web_options. Returns 0, -ENOENT (no libcurl), -ELIBACC or -ENOMEM. */
int hr_ch_client_new(const struct hr_ch_target *target, const atomic_bool *stop,
		     struct hr_ch_client **ret, char **ret_error);
void hr_ch_client_free(struct hr_ch_client *c); /* accepts NULL */

/* An answer in the format RowBinary, or a part of it. */
struct hr_ch_answer {
	const uint8_t *data;
	size_t bytes, at;
	bool failed; /* a value was not complete */
};
uint64_t hr_ch_take_u64(struct hr_ch_answer *a);
/* Returns n bytes, which are in the answer and have no NUL at the end. */
const char *hr_ch_take_text(struct hr_ch_answer *a, size_t *ret_n);

/*
 * Asks `SELECT selection`. Calls `row` for each row, at its first column; it must take all columns.
 * Any result but 0 ends the answer with this error. -EPROTO: the answer is not from ClickHouse.
 * -EREMOTEIO: ClickHouse refuses the question. Other errors: no server answered.
 */
typedef int hr_ch_row(void *self, struct hr_ch_answer *at);
int hr_ch_ask(struct hr_ch_client *c, unsigned shard, const char *selection, hr_ch_row *row,
	      void *self, char **ret_error);

/*
 * Asks the first shard for its release. *ret_text (malloc'ed) has digits and dots, for example
 * 23.8.2.7. Errors: see hr_ch_ask.
 */
int hr_ch_release(struct hr_ch_client *c, unsigned *ret, char **ret_text, char **ret_error);

/* Asks the first shard a question in a format of ClickHouse, and writes the answer. */
int hr_ch_print(struct hr_ch_client *c, const char *sql, const char *format, FILE *to,
		char **ret_error);

/*
 * Write a text as a literal of ClickHouse, which knows escapes with backslashes. _name: escapes it
 * before, as the tables have names.
 */
void hr_ch_put_literal(FILE *to, const char *text);
void hr_ch_put_name(FILE *to, const char *name);

/*
 * Inserts blocks at the same time, those without rows excepted. Returns 0 if ClickHouse has
 * confirmed all of them. After an error, any of them may be there or not.
 */
int hr_ch_insert(struct hr_ch_client *c, unsigned shard, struct hr_ch_block *blocks, size_t n,
		 char **ret_error);

#endif

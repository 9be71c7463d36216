/* SPDX-License-Identifier: Apache-2.0 */
/*
 * prune.h - which events a statement's WHERE can match
 *
 * Purpose   DuckDB's C API hands table functions no filters, so the predicates are taken from the
 *           statement itself: its parse tree (DuckDB's json_serialize_sql) is searched for AND-ed
 *           comparisons of the columns below with constants. Batches whose header contradicts them
 *           are skipped. DuckDB still applies the whole WHERE to what is left, so a predicate that
 *           is not understood costs time and never changes an answer. `hr_busy` has rows with the
 *           same columns, so pruning applies to it, too.
 * Certainty Only if `events` is mentioned exactly once, in the FROM of the SELECT whose WHERE it
 *           is, itself or in inner joins (then only by qualified column names), without
 *           TABLESAMPLE, and no name is shadowed.
 * Lifetime  hr_prune_init .. hr_prune_parse .. hr_prune_done. Plain data, one thread; read by any
 *           number.
 */
#ifndef HEADRACE_QUERY_PRUNE_PRUNE_H
#define HEADRACE_QUERY_PRUNE_PRUNE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "store/store.h"

#define HR_PRUNE_OPS	512u /* op ids are below this: HR_OP_MAX */
#define HR_PRUNE_VALUES 64u  /* longer IN lists are ignored */

struct hr_query_arg;

/* The values that a column must have; `known` false: any. */
struct hr_prune_set {
	bool known;
	unsigned n;
	char *text[HR_PRUNE_VALUES];
	int64_t number[HR_PRUNE_VALUES];
};

struct hr_prune_range {
	int64_t min, max; /* inclusive */
};

struct hr_prune {
	struct hr_prune_set cluster, job, node;			 /* of the stream */
	struct hr_prune_set proc, pid, rank, local_rank, worker; /* of processes in the batch */
	struct hr_prune_set path;				 /* of the event's file */
	struct hr_prune_range start_ns, end_ns;			 /* wall clock */
	bool ops_known;
	uint64_t ops[HR_PRUNE_OPS / 64]; /* ops that can match, classes included */
	bool distinct; /* rows that are equal in all requested columns count as one */
};

void hr_prune_init(struct hr_prune *p); /* everything matches */
void hr_prune_done(struct hr_prune *p);

/*
 * Narrows `p` by the parse tree of a statement (the output of json_serialize_sql), with the values
 * of its parameters. Whatever is not understood leaves `p` wider. 0 or -ENOMEM.
 */
int hr_prune_parse(struct hr_prune *p, const char *json, const struct hr_query_arg *args,
		   size_t n_args);

/* Whether rows of the stream, of the batch, can match. */
bool hr_prune_stream(const struct hr_prune *p, const struct hr_stream *s);
bool hr_prune_batch(const struct hr_prune *p, const struct hr_stream *s,
		    const struct hr_batch_ref *b);

#endif

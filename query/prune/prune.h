/* SPDX-License-Identifier: Apache-2.0 */
/*
 * prune.h - which events a statement's WHERE can match
 *
 * DuckDB's C API gives table functions no filters. So the statement's parse tree is searched for
 * AND-ed comparisons of the columns below with constants, and batches are skipped if their header
 * contradicts them. DuckDB still applies the whole WHERE: a predicate that is not understood costs
 * time, but never changes an answer. Pruning applies to `hr_busy`, too.
 *
 * It requires that the statement mentions `events` exactly once: in the FROM of the SELECT with
 * the WHERE, alone or in inner joins (then with qualified column names), without TABLESAMPLE and
 * without shadowed names. Any number of threads may read the result.
 */
#ifndef HEADRACE_QUERY_PRUNE_PRUNE_H
#define HEADRACE_QUERY_PRUNE_PRUNE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "store/store.h"

#define HR_PRUNE_OPS	512u /* op ids are smaller: HR_OP_MAX */
#define HR_PRUNE_VALUES 64u  /* ignores longer IN lists */

struct hr_query_arg;

/* The values that a column must have. `known` false: any value. */
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
	uint64_t
	    ops[HR_PRUNE_OPS / 64]; /* ops that can match, including those of matching classes */
	bool distinct;		    /* rows that are equal in all requested columns count once */
};

void hr_prune_init(struct hr_prune *p); /* everything matches */
void hr_prune_done(struct hr_prune *p);

/*
 * Narrows `p` by the parse tree of a statement (from json_serialize_sql) and its parameters.
 * Ignores what it does not understand. 0 or -ENOMEM.
 */
int hr_prune_parse(struct hr_prune *p, const char *json, const struct hr_query_arg *args,
		   size_t n_args);

/* Whether rows of the stream, of the batch, can match. */
bool hr_prune_stream(const struct hr_prune *p, const struct hr_stream *s);
bool hr_prune_batch(const struct hr_prune *p, const struct hr_stream *s,
		    const struct hr_batch_ref *b);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * prune.h - which batches of events a statement's WHERE can match
 *
 * DuckDB's C API passes no filters to table functions. So headrace searches the statement's parse
 * tree for comparisons of the columns below with constants, joined by AND. A scan skips a batch
 * whose header contradicts them. DuckDB still applies the whole WHERE. So a predicate that headrace
 * ignores makes the query slower, but does not change its answer.
 *
 * headrace skips batches only if all of these are true:
 *
 *   - the statement names `events` (or calls hr_busy) once, in the FROM that belongs to the WHERE
 *   - `events` is alone there, or in inner joins whose columns have qualified names
 *   - `events` has no TABLESAMPLE; its name, and the names of columns below, have no other meaning
 *
 * Any number of threads may read the result.
 */
#ifndef HEADRACE_QUERY_PRUNE_PRUNE_H
#define HEADRACE_QUERY_PRUNE_PRUNE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "store/store.h"

#define HR_PRUNE_OPS	512u /* number of ids of operations (HR_OP_MAX) */
#define HR_PRUNE_VALUES 64u  /* a longer IN list is ignored */

struct hr_query_arg;

/* The values of a column that WHERE allows. `known` false: all values. */
struct hr_prune_set {
	bool known;
	unsigned n;
	char *text[HR_PRUNE_VALUES];
	int64_t number[HR_PRUNE_VALUES];
};

struct hr_prune_range {
	int64_t min, max; /* `min` and `max` belong to the range */
};

struct hr_prune {
	struct hr_prune_set cluster, job, node;			 /* columns of streams */
	struct hr_prune_set proc, pid, rank, local_rank, worker; /* columns of processes */
	struct hr_prune_set path;
	struct hr_prune_range start_ns, end_ns; /* wall clock */
	bool ops_known;
	/* Bitmap of the operations that WHERE allows, by `op` or by `class`. */
	uint64_t ops[HR_PRUNE_OPS / 64];
	/* The answer does not change if a scan returns several equal rows only once. */
	bool distinct;
};

void hr_prune_init(struct hr_prune *p); /* allows everything */
void hr_prune_done(struct hr_prune *p);

/*
 * Adds the predicates of a statement, from its parse tree (the text of json_serialize_sql) and
 * parameters, to `p`. Ignores other predicates than those above. Returns 0 or -ENOMEM.
 */
int hr_prune_parse(struct hr_prune *p, const char *json, const struct hr_query_arg *args,
		   size_t n_args);

/* Return whether the stream, or the batch of events, may have rows that WHERE allows. */
bool hr_prune_stream(const struct hr_prune *p, const struct hr_stream *s);
bool hr_prune_batch(const struct hr_prune *p, const struct hr_stream *s,
		    const struct hr_batch_ref *b);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * prune.h - which batches a statement's WHERE can match
 *
 * DuckDB's C API passes no filters to table functions. So headrace searches the statement's parse
 * tree for comparisons of the columns below with constants, joined by AND. A scan skips a batch
 * whose header contradicts them. DuckDB still applies the whole WHERE. So if headrace
 * does not understand a predicate, the query takes longer, but has the same answer.
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

#define HR_PRUNE_OPS	512u /* op ids are less than this: HR_OP_MAX */
#define HR_PRUNE_VALUES 64u  /* a longer IN list prunes nothing */

struct hr_query_arg;

/* The values that a column can have. `known` false: all values. */
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
	struct hr_prune_set cluster, job, node;			 /* names of the stream */
	struct hr_prune_set proc, pid, rank, local_rank, worker; /* values of processes */
	struct hr_prune_set path;				 /* path of the event's file */
	struct hr_prune_range start_ns, end_ns;			 /* wall clock */
	bool ops_known;
	/* The ops that can match: those that WHERE names by op or by class. */
	uint64_t ops[HR_PRUNE_OPS / 64];
	/* The answer stays the same if each of several equal rows is returned only once. */
	bool distinct;
};

void hr_prune_init(struct hr_prune *p); /* afterwards, everything matches */
void hr_prune_done(struct hr_prune *p);

/*
 * Narrows `p` by a statement's parse tree (the text of json_serialize_sql) and parameters. Ignores
 * predicates that it does not understand. Returns 0 or -ENOMEM.
 */
int hr_prune_parse(struct hr_prune *p, const char *json, const struct hr_query_arg *args,
		   size_t n_args);

/* Return whether any row of the stream, or of the batch, can match. */
bool hr_prune_stream(const struct hr_prune *p, const struct hr_stream *s);
bool hr_prune_batch(const struct hr_prune *p, const struct hr_stream *s,
		    const struct hr_batch_ref *b);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * queries.h - runs each query of a client in its own child process
 *
 * Purpose   Starts `headrace-collector query-worker`, sends a QueryOrder to this child, and passes
 *           its messages to the client. Ends the child if the client cancels or disconnects, at
 *           the time limit, or if the child sends an invalid message.
 *
 *      waiting --(a place is free)--> running --(Done, or the child ends)--> over
 *         +---------(Cancel, drop)-------+--(time over, Cancel, drop: SIGINT, 2 s later SIGKILL)--^
 */
#ifndef HEADRACE_COLLECTOR_QUERIES_H
#define HEADRACE_COLLECTOR_QUERIES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <uv.h>

#include "collector/who.h"
#include "net/conn.h"
#include "proto/wire.pb-c.h"

struct hr_queries_config {
	const char *store;     /* NULL: there is none, so all queries are refused */
	const char *exe;       /* path of headrace-collector: /proc/self/exe */
	unsigned at_once;      /* number of queries that run at once; others wait */
	unsigned per_caller;   /* running and waiting queries per user */
	uint64_t memory_bytes; /* limit of one query */
	uint64_t time_ms;
	unsigned threads;     /* threads of one query; 0: one per CPU */
	const char *spill;    /* folder for temporary files; NULL: queries have none */
	uint64_t spill_bytes; /* limit of one query */
	uint64_t silent_ms;
};

struct hr_queries;

int hr_queries_new(uv_loop_t *loop, const struct hr_queries_config *config,
		   struct hr_queries **ret);
/* Ends all queries. Calls `gone` after the last child has ended. */
void hr_queries_stop(struct hr_queries *all, void (*gone)(void *self), void *self);
void hr_queries_free(struct hr_queries *all); /* accepts NULL */

/*
 * Begins a query, which sends Progress, Output, Note and Done to `client`. -EBUSY: the client
 * already has a query. -EACCES: the user has no right to query, and received Done.
 */
int hr_queries_begin(struct hr_queries *all, struct hr_conn *client, const struct hr_who *who,
		     const Headrace__Query *query);
void hr_queries_cancel(struct hr_queries *all, struct hr_conn *client); /* Done follows */
/* Ends a query without Done. Call it when the connection closes. */
void hr_queries_drop(struct hr_queries *all, struct hr_conn *client);
/* Call it when the send buffer of the client has space again. */
void hr_queries_drained(struct hr_queries *all, struct hr_conn *client);
bool hr_queries_has(const struct hr_queries *all, const struct hr_conn *client);

/* Current numbers, and totals of finished queries. A query with a mistake counts as failed. */
struct hr_queries_stats {
	unsigned running, waiting;
	uint64_t answered, failed, cancelled;
};
void hr_queries_stats(const struct hr_queries *all, struct hr_queries_stats *ret);

/* The main function of the child: runs the QueryOrder from `fd`. Returns the exit status. */
int hr_query_worker(int fd);

#endif

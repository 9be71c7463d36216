/* SPDX-License-Identifier: Apache-2.0 */
/*
 * queries.h - queries of clients, each in a child process of its own
 *
 * Purpose   For each Query, starts `headrace-collector query-worker`, sends this child a
 *           QueryOrder, and passes its messages to the client. Ends the child when the client
 *           cancels or disconnects, the time limit is reached, or the child sends an invalid
 *           message. Ingest never waits for a query.
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
	const char *store;
	const char *exe;       /* path of headrace-collector: /proc/self/exe */
	unsigned at_once;      /* limit of running queries; others wait */
	unsigned per_caller;   /* limit of running and waiting queries of one uid */
	uint64_t memory_bytes; /* limit of one query */
	uint64_t time_ms;
	unsigned threads;     /* limit of one query; 0: one per CPU */
	const char *spill;    /* folder for temporary files; NULL: none */
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
 * already has a query. -EACCES: the user may not query; Done was sent.
 */
int hr_queries_begin(struct hr_queries *all, struct hr_conn *client, const struct hr_who *who,
		     const Headrace__Query *query);
void hr_queries_cancel(struct hr_queries *all, struct hr_conn *client); /* Done follows */
/* Like _cancel, but sends nothing: call it when the connection closes. */
void hr_queries_drop(struct hr_queries *all, struct hr_conn *client);
/* Call it when the client's send buffer has room again. */
void hr_queries_drained(struct hr_queries *all, struct hr_conn *client);
/* Returns whether a query of the client runs or waits. */
bool hr_queries_has(const struct hr_queries *all, const struct hr_conn *client);

/* Current numbers, and totals of ended queries. A query with a mistake counts as failed. */
struct hr_queries_stats {
	unsigned running, waiting;
	uint64_t answered, failed, cancelled;
};
void hr_queries_stats(const struct hr_queries *all, struct hr_queries_stats *ret);

/* The main function of the child: serves one QueryOrder on `fd`, and returns the exit status. */
int hr_query_worker(int fd);

#endif

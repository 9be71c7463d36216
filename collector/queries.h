/* SPDX-License-Identifier: Apache-2.0 */
/*
 * queries.h - queries of clients, each in a child process of its own
 *
 * Purpose   Starts `headrace-collector query-worker` for each Query, sends it a QueryOrder, passes
 *           its messages to the client, and ends it when the client cancels or disconnects, when
 *           its time is over, or when it sends invalid messages. Ingest never waits.
 * Owner     Call hr_queries_drop before a client's connection is freed.
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
	unsigned at_once;      /* running queries; more of them wait */
	unsigned per_caller;   /* running and waiting queries of one uid */
	uint64_t memory_bytes; /* of one query */
	uint64_t time_ms;
	unsigned threads;     /* of one query; 0: one per CPU */
	const char *spill;    /* folder; NULL: none */
	uint64_t spill_bytes; /* of one query */
	uint64_t silent_ms;
};

struct hr_queries;

int hr_queries_new(uv_loop_t *loop, const struct hr_queries_config *config,
		   struct hr_queries **ret);
/* Ends all queries; calls `gone` from the loop after the last child has ended. */
void hr_queries_stop(struct hr_queries *all, void (*gone)(void *self), void *self);
void hr_queries_free(struct hr_queries *all); /* accepts NULL */

/*
 * Begins a client's query: sends Progress, Output, Note and Done to `client`. -EBUSY: the client
 * has a query. -EACCES: the caller may not query, and Done was sent.
 */
int hr_queries_begin(struct hr_queries *all, struct hr_conn *client, const struct hr_who *who,
		     const Headrace__Query *query);
void hr_queries_cancel(struct hr_queries *all, struct hr_conn *client); /* Done follows */
void hr_queries_drop(struct hr_queries *all,
		     struct hr_conn *client); /* the connection is closing: sends nothing */
void hr_queries_drained(struct hr_queries *all,
			struct hr_conn *client); /* the client's send buffer has room again */
bool hr_queries_has(const struct hr_queries *all,
		    const struct hr_conn *client); /* a query without Done */

/* Current and total numbers. A query with a mistake counts as failed. */
struct hr_queries_stats {
	unsigned running, waiting;
	uint64_t answered, failed, cancelled;
};
void hr_queries_stats(const struct hr_queries *all, struct hr_queries_stats *ret);

/* The child: serves one QueryOrder on `fd` and returns its exit status. */
int hr_query_worker(int fd);

#endif

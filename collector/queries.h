/* SPDX-License-Identifier: Apache-2.0 */
/*
 * queries.h - queries of clients, each in a child process of its own
 *
 * Purpose   Starts `headrace-collector query-worker` for each Query, sends it a QueryOrder, passes
 *           its messages to the client, and ends it when the client cancels or disconnects, when
 *           its time is over, or when it sends invalid messages. Ingest never waits.
 * Owner     The server. Before a client's connection is freed, hr_queries_drop must be called.
 * Threads   The loop's.
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
	const char *exe;       /* headrace-collector itself: /proc/self/exe */
	unsigned at_once;      /* running; others wait */
	unsigned per_caller;   /* running and waiting, of one uid */
	uint64_t memory_bytes; /* of one, most */
	uint64_t time_ms;      /* of one, most */
	unsigned threads;      /* of one, most; 0: as many as there are CPUs */
	const char *spill;     /* folder; NULL: none */
	uint64_t spill_bytes;  /* of one, most */
	uint64_t silent_ms;
};

struct hr_queries;

int hr_queries_new(uv_loop_t *loop, const struct hr_queries_config *config,
		   struct hr_queries **ret);
/* Ends all; `gone` is called from the loop after the last child has ended. */
void hr_queries_stop(struct hr_queries *all, void (*gone)(void *self), void *self);
void hr_queries_free(struct hr_queries *all); /* accepts NULL */

/*
 * Begins a client's query: Progress, Output, Note and Done go to `client`. A client has one at a
 * time: -EBUSY. -EACCES: this caller may not query (Done was already sent).
 */
int hr_queries_begin(struct hr_queries *all, struct hr_conn *client, const struct hr_who *who,
		     const Headrace__Query *query);
void hr_queries_cancel(struct hr_queries *all, struct hr_conn *client); /* Done follows */
void hr_queries_drop(struct hr_queries *all,
		     struct hr_conn *client); /* the connection is closing: nothing follows */
void hr_queries_drained(struct hr_queries *all,
			struct hr_conn *client); /* its send buffer has room again */
bool hr_queries_has(const struct hr_queries *all,
		    const struct hr_conn *client); /* one without Done */

/* Now, and since the start. A query with a mistake counts as failed. */
struct hr_queries_stats {
	unsigned running, waiting;
	uint64_t answered, failed, cancelled;
};
void hr_queries_stats(const struct hr_queries *all, struct hr_queries_stats *ret);

/* The child: serves one QueryOrder on `fd` and returns its exit status. */
int hr_query_worker(int fd);

#endif

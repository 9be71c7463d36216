/* SPDX-License-Identifier: Apache-2.0 */
/*
 * attach.h - the thread that accepts processes
 *
 * Owner     The node.
 * Threads   Its own: it listens, reads hellos, journals processes, hands out maps or adopts offered ones (abi.h), and watches
 *           pidfds for deaths. A connection lives for one message each way. A process is journaled before it gets its answer, so
 *           that a crash forgets none that has rings. A connection without a message for a second is closed.
 */
#ifndef HEADRACE_DAEMON_ATTACH_ATTACH_H
#define HEADRACE_DAEMON_ATTACH_ATTACH_H

#include <sys/types.h>

#include "daemon/base/clock.h"
#include "daemon/drain/drain.h"
#include "daemon/engine/engine.h"

struct hr_attach;

struct hr_attach_config {
	const char *socket;
	int listen_fd; /* listens at `socket` already, stays the caller's; 0: none */
	int handoff_fd; /* brings connections that another process accepted, stays the caller's; 0: none */
	uint32_t uid; /* others, but root, are refused */
	const char *ranks, *local_ranks;
	uint32_t max_sessions;
	uint64_t max_ring_bytes;
	uint64_t *last_proc; /* the highest number of a process; atomic, shared with the drain */
	struct hr_probes *probes; /* NULL: none yet; atomic */
	/* a daemon was killed here, and may have begun with the first connection of the hand-off queue */
	bool takeover;
	struct hr_last_hello last; /* that the journal knows */
	struct hr_journal *journal;
	struct hr_drain *drain;
	const struct hr_clock *clock;
	int page_fd;		   /* of the node page, for clients; stays the caller's */
	struct hr_node_page *page; /* for `pending`; NULL: a hand-off queue keeps connections */
};

/* Listens; processes wait in the backlog until hr_attach_start. */
int hr_attach_new(const struct hr_attach_config *config, struct hr_attach **ret);

/* Before the start: the process of a session from before a restart. Its death is noticed, even one that happened meanwhile. */
int hr_attach_adopt(struct hr_attach *a, const struct hr_session *s, uint64_t start_time);

/* Any thread: from now on the probes learn of hellos. */
void hr_attach_probes(struct hr_attach *a, struct hr_probes *probes);

int hr_attach_start(struct hr_attach *a);
/* Accepts what has connected before; then the thread has ended and the socket is removed. */
void hr_attach_stop(struct hr_attach *a);
void hr_attach_free(struct hr_attach *a); /* accepts NULL */

/* What its clients have. */
struct hr_attach_use {
	uint64_t served; /* connections of the hand-off queue; their processes are counted below */
	uint64_t ring_bytes;
	uint32_t sessions;
};
void hr_attach_use(struct hr_attach *a, struct hr_attach_use *ret); /* any thread */

/* Pids of processes attached now, at most max; returns how many there are. Any thread. */
size_t hr_attach_pids(struct hr_attach *a, pid_t *pids, size_t max);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * attach.h - the thread that accepts processes
 *
 * Owner     The node.
 * Threads   Its own: listens, reads hellos, journals processes, sends maps or adopts offered ones
 *           (abi.h), and watches pidfds for deaths. A process is journaled before its answer, so a
 *           crash forgets none that has rings. A connection has one message each way; without one
 *           it is closed after a second.
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
	int listen_fd;	/* listens at `socket`; the caller keeps it; 0: none */
	int handoff_fd; /* accepted connections (passfd.h); the caller keeps it; 0: none */
	uint32_t uid;	/* other users, except root, are refused */
	const char *ranks, *local_ranks;
	uint32_t max_sessions;
	uint64_t max_ring_bytes;
	/* the highest process number in use; atomic, shared with the drain thread */
	uint64_t *last_proc;
	struct hr_probes *probes; /* NULL: none yet; atomic */
	/* a daemon was killed, perhaps while it processed the first connection of the queue */
	bool takeover;
	struct hr_last_hello last; /* the last hello in the journal */
	struct hr_journal *journal;
	struct hr_drain *drain;
	const struct hr_clock *clock;
	/* of the node page, sent to clients; the caller keeps it */
	int page_fd;
	/* its `pending` cells; NULL: the hand-off queue keeps the connections instead */
	struct hr_node_page *page;
};

/* Listens; processes wait in the backlog until hr_attach_start. */
int hr_attach_new(const struct hr_attach_config *config, struct hr_attach **ret);

/* Before hr_attach_start: watches a process from before a restart, even if it has exited since. */
int hr_attach_adopt(struct hr_attach *a, const struct hr_session *s, uint64_t start_time);

/* From now on the thread passes hellos to these probes. Any thread. */
void hr_attach_probes(struct hr_attach *a, struct hr_probes *probes);

int hr_attach_start(struct hr_attach *a);
/* Accepts the waiting connections, ends the thread and removes the socket. */
void hr_attach_stop(struct hr_attach *a);
void hr_attach_free(struct hr_attach *a); /* accepts NULL */

struct hr_attach_use {
	uint64_t served; /* connections of the hand-off queue; their processes are counted below */
	uint64_t ring_bytes;
	uint32_t sessions;
};
void hr_attach_use(struct hr_attach *a, struct hr_attach_use *ret); /* any thread */

/* At most `max` pids of attached processes; returns how many there are. Any thread. */
size_t hr_attach_pids(struct hr_attach *a, pid_t *pids, size_t max);

#endif

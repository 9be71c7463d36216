/* SPDX-License-Identifier: Apache-2.0 */
/*
 * attach.h - the thread that accepts processes
 *
 * Owner     The node.
 * Threads   The attach thread listens, reads hellos, journals processes, sends maps or adopts
 *           offered ones (abi.h), and watches pidfds for deaths. It journals a process before it
 *           answers, so that a kill loses no process with rings. A connection has one message each
 *           way. If no message arrives within a second, the thread closes it.
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
	int listen_fd;	/* a listening socket at `socket`, which the caller owns; 0: none */
	int handoff_fd; /* the hand-off queue (passfd.h), which the caller owns; 0: none */
	uint32_t uid;	/* the owner of the job; other users, except root, are refused */
	const char *ranks, *local_ranks;
	uint32_t max_sessions;
	uint64_t max_ring_bytes;
	/* The highest process number in use; atomic, shared with the drain thread. */
	uint64_t *last_proc;
	struct hr_probes *probes; /* NULL: none yet; atomic */
	/*
	 * A previous daemon was killed, maybe while it processed the first connection of the queue.
	 */
	bool takeover;
	struct hr_last_hello last; /* the last hello in the journal */
	struct hr_journal *journal;
	struct hr_drain *drain;
	const struct hr_clock *clock;
	/* The descriptor of the node page, for clients; the caller owns it. */
	int page_fd;
	/*
	 * The node page, for its cells `pending`. NULL with a hand-off queue, because the queue
	 * keeps the connections.
	 */
	struct hr_node_page *page;
};

/* Listens; processes wait in the backlog until hr_attach_start. */
int hr_attach_new(const struct hr_attach_config *config, struct hr_attach **ret);

/*
 * Watches a process that attached before a restart, even if it has exited. Call it before
 * hr_attach_start.
 */
int hr_attach_adopt(struct hr_attach *a, const struct hr_session *s, uint64_t start_time);

/* Any thread. From now on, the attach thread reports hellos to these probes. */
void hr_attach_probes(struct hr_attach *a, struct hr_probes *probes);

int hr_attach_start(struct hr_attach *a);
/* Accepts the waiting connections, ends the thread and removes the socket. */
void hr_attach_stop(struct hr_attach *a);
void hr_attach_free(struct hr_attach *a); /* accepts NULL */

struct hr_attach_use {
	/* Connections taken from the hand-off queue. `sessions` includes their processes. */
	uint64_t served;
	uint64_t ring_bytes;
	uint32_t sessions;
};
void hr_attach_use(struct hr_attach *a, struct hr_attach_use *ret); /* any thread */

/*
 * Any thread. Stores at most `max` pids of attached processes. Returns the number of all attached
 * processes.
 */
size_t hr_attach_pids(struct hr_attach *a, pid_t *pids, size_t max);

#endif

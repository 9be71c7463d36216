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

/*
 * How long a connection may stay without a message, a notice without the end of its connection, and
 * a client away after a kill. Tests change it before they start a node.
 */
extern uint64_t hr_attach_pending_ns;

struct hr_attach;

struct hr_attach_config {
	const struct hr_node_config *node; /* it has limits, and shim_fd or handoff_fd */
	/* The highest process number; atomic, because the drain thread uses it, too. */
	uint64_t *last_proc;
	struct hr_probes *probes; /* NULL: no probes (yet); atomic */
	/*
	 * A previous daemon was killed. It may already have processed the first connection of the
	 * queue.
	 */
	bool takeover;
	struct hr_last_hello last; /* the last hello that the journal contains */
	struct hr_journal *journal;
	struct hr_drain *drain;
	const struct hr_clock *clock;
	/* Descriptor of the node page, which clients get. The caller owns it. */
	int page_fd;
	/*
	 * The node page, whose cells `pending` this thread writes. NULL with a hand-off queue,
	 * because then the queue keeps the connections.
	 */
	struct hr_node_page *page;
};

/* Listens. Processes that connect wait in the backlog until hr_attach_start. */
int hr_attach_new(const struct hr_attach_config *config, struct hr_attach **ret);

/*
 * Watches a process that attached before a restart, even if the process has exited. Call it before
 * hr_attach_start.
 */
int hr_attach_adopt(struct hr_attach *a, const struct hr_session *s, uint64_t start_time);

/* From now on, the attach thread reports hellos to these probes. Any thread. */
void hr_attach_probes(struct hr_attach *a, struct hr_probes *probes);

int hr_attach_start(struct hr_attach *a);
/* Accepts the connections that wait, ends the thread and removes the socket. */
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
 * Stores at most `max` pids of attached processes in `pids`. Returns the number of all attached
 * processes. Any thread.
 */
size_t hr_attach_pids(struct hr_attach *a, pid_t *pids, size_t max);

#endif

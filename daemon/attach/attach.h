/* SPDX-License-Identifier: Apache-2.0 */
/*
 * attach.h - the thread that lets processes in
 *
 * Owner     The node.
 * Threads   Its own: listens, reads hellos, journals who came, hands out maps or adopts those that are offered (abi.h), and
 * watches pidfds for deaths. A connection lives for one message each way. A process is journaled before it is answered: whoever got
 * rings is known after a crash. Who says nothing for a second is closed.
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
	/* another daemon was here, and may have begun with who stands at the door's head */
	bool takeover;
	struct hr_last_hello last; /* that the journal knows */
	struct hr_journal *journal;
	struct hr_drain *drain;
	const struct hr_clock *clock;
	int page_fd;		   /* of the node page, for clients; stays the caller's */
	struct hr_node_page *page; /* for `guests`; NULL: a door keeps connections */
};

/* Listens; processes wait in the backlog until hr_attach_start. */
int hr_attach_new(const struct hr_attach_config *config, struct hr_attach **ret);

/* Before the start: the process of a session from before a restart. Its death is noticed, even one that happened meanwhile. */
int hr_attach_adopt(struct hr_attach *a, const struct hr_session *s, uint64_t start_time);

/* Any thread: from now on they are told of hellos. */
void hr_attach_probes(struct hr_attach *a, struct hr_probes *probes);

int hr_attach_start(struct hr_attach *a);
void hr_attach_stop(
    struct hr_attach *a); /* lets in who knocked before; the thread is gone, the socket removed */
void hr_attach_free(struct hr_attach *a); /* accepts NULL */

/* What its clients have. */
struct hr_attach_use {
	uint64_t served; /* connections from the door; whoever they brought is among the rest */
	uint64_t ring_bytes;
	uint32_t sessions;
};
void hr_attach_use(struct hr_attach *a, struct hr_attach_use *ret); /* any thread */

/* Pids of processes attached now, at most max; returns how many there are. Any thread. */
size_t hr_attach_pids(struct hr_attach *a, pid_t *pids, size_t max);

#endif

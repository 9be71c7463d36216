/* SPDX-License-Identifier: Apache-2.0 */
/*
 * feed.h - turns records and sums of probes into journal entries
 *
 * Purpose   Finds the process and file of each record and sum of probes.h, applies path filters,
 *           writes entries: ATTACH and END (of processes without a hello), RECORDS, KERNEL, TALLY.
 * Owner     The drain thread.
 *
 *      States of an image (bpf/probe.h)
 *
 *      unknown --(its first record)--> waiting --(1 s, its end, or many records)--> probed
 *         \                              \--(hello)--> attached: the session's process
 *          `--(hello)--> attached
 *
 * The feed keeps the records of a waiting image, because most processes send a hello within
 * milliseconds. What the dynamic loader read before the hello then belongs to the session. A probed
 * image is a process of its own. It may still send a hello, so the feed keeps its latest records
 * for a second, too.
 */
#ifndef HEADRACE_DAEMON_DRAIN_FEED_H
#define HEADRACE_DAEMON_DRAIN_FEED_H

#include "daemon/drain/drain.h"
#include "daemon/probes/probes.h"

struct hr_feed;

int hr_feed_new(struct hr_drain *d, struct hr_probes *probes, struct hr_feed **ret);
void hr_feed_free(struct hr_feed *f); /* accepts NULL */

/* Call it when the drain thread gets a session. The session's `probed` describes the hello. */
void hr_feed_session(struct hr_feed *f, const struct hr_session *s);
void hr_feed_session_ended(struct hr_feed *f, uint64_t proc);

/* Takes records and sums of exited processes. Call it before their ends are journaled. */
void hr_feed_settle(struct hr_feed *f, uint64_t now_ns);

/* Returns the number of records taken. `all`: this is the last sweep, and no record may wait. */
uint64_t hr_feed_sweep(struct hr_feed *f, uint64_t now_ns, bool all);

#endif

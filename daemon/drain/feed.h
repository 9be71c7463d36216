/* SPDX-License-Identifier: Apache-2.0 */
/*
 * feed.h - from what probes tell to journal entries
 *
 * Purpose   Finds the process and the file of each record and sum of probes.h, leaves out what filters leave out, and writes ATTACH
 *           (of processes that never said hello), RECORDS, KERNEL and END entries.
 * Owner     The drain; its thread.
 *
 *      an image (bpf/probe.h)
 *
 *      unknown --(its first record)--> waiting --(a second, its end, or too much)--> probed: a process of our own, by ATTACH
 *         \                              \--(its shim says hello)--> attached: that session's process
 *          `--(its shim says hello)--> attached
 *
 * What a waiting image does is kept: most processes say hello within milliseconds, and until then the dynamic loader reads
 * libraries, which are the session's operations like any other. A probed one may say hello still, where it has a shim: what could be that
 * one's first operation is kept for a second, too.
 */
#ifndef HEADRACE_DAEMON_DRAIN_FEED_H
#define HEADRACE_DAEMON_DRAIN_FEED_H

#include "daemon/drain/drain.h"
#include "daemon/probes/probes.h"

struct hr_feed;

int hr_feed_new(struct hr_drain *d, struct hr_probes *probes, struct hr_feed **ret);
void hr_feed_free(struct hr_feed *f); /* accepts NULL */

/* A session is the drain's from now on; `s->probed` tells of its hello. */
void hr_feed_session(struct hr_feed *f, const struct hr_session *s);
void hr_feed_session_ended(struct hr_feed *f, uint64_t proc);

/* Processes are gone, and what they did is to come before their end: takes all that there is to know of them. */
void hr_feed_settle(struct hr_feed *f, uint64_t now_ns);

/* Takes what has come; returns how much that was. `all`: the last time, nothing is kept back. */
uint64_t hr_feed_sweep(struct hr_feed *f, uint64_t now_ns, bool all);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * feed.h - turns records and sums of probes into journal entries
 *
 * Purpose   Finds process and file of each record and sum of probes.h, applies path filters, writes
 *           ATTACH (for processes without a hello), RECORDS, KERNEL and END entries.
 * Owner     The drain; its thread.
 *
 *      States of an image (bpf/probe.h)
 *
 *      unknown --(its first record)--> waiting --(1 s, its end, or many records)--> probed
 *         \                              \--(hello)--> attached: the session's process
 *          `--(hello)--> attached
 *
 * A probed image is a process of its own. Records of a waiting image are kept: most processes send
 * a hello within milliseconds, and what the dynamic loader read until then belongs to the session.
 * The hello of a probed image may still come, so its latest second is kept, too.
 */
#ifndef HEADRACE_DAEMON_DRAIN_FEED_H
#define HEADRACE_DAEMON_DRAIN_FEED_H

#include "daemon/drain/drain.h"
#include "daemon/probes/probes.h"

struct hr_feed;

int hr_feed_new(struct hr_drain *d, struct hr_probes *probes, struct hr_feed **ret);
void hr_feed_free(struct hr_feed *f); /* accepts NULL */

/* The drain has this session now; `s->probed` describes its hello. */
void hr_feed_session(struct hr_feed *f, const struct hr_session *s);
void hr_feed_session_ended(struct hr_feed *f, uint64_t proc);

/* Processes have exited: takes what the probes have of them, so that it precedes their end. */
void hr_feed_settle(struct hr_feed *f, uint64_t now_ns);

/* Returns how many records it took. `all`: the last sweep, keeps none. */
uint64_t hr_feed_sweep(struct hr_feed *f, uint64_t now_ns, bool all);

#endif

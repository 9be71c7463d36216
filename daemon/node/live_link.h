/* SPDX-License-Identifier: Apache-2.0 */
/*
 * live_link.h - pictures of a running job (live.h), sent to who asks for them
 *
 * Purpose   What a process that records a job does with a connection whose request is `live`. It was let in by somebody who knows
 *           that it may ask. One request for a connection:
 *
 *      asker                                  process of the job
 *      live  [in_flight_ns]          ---->
 *                                    <----    live  bytes        then so many bytes of a LiveJob (proto/live.proto), in
 *                                             messages of HR_CONTROL_BYTES at most, and the end
 *                                             | error  code text, and the end
 *
 * Limits    A picture serves all who ask within HR_LIVE_FRESH_MS, so that many askers cost what one does. Who does not read
 *           waits, and is in nobody's way; where there are more than HR_LIVE_ASKERS the one who has waited longest goes.
 * Owner     The embedding structure. Threads: the loop's.
 */
#ifndef HEADRACE_DAEMON_NODE_LIVE_LINK_H
#define HEADRACE_DAEMON_NODE_LIVE_LINK_H

#include <uv.h>

#include "daemon/control/control.h"
#include "daemon/node/node.h"

#define HR_LIVE_ASKERS	 8u
#define HR_LIVE_FRESH_MS 50u

struct hr_live_client;
struct hr_live_bytes;

struct hr_live_link {
	uv_loop_t *loop;
	struct hr_live_client *clients; /* who came last first */
	struct hr_live_bytes *last;
	uint64_t last_ms, in_flight_ns; /* of `last` */
};

void hr_live_link_init(struct hr_live_link *l, uv_loop_t *loop);

/* Answers; takes `fd` over. */
void hr_live_link_take(struct hr_live_link *l, struct hr_node *n, const struct hr_message *request,
		       int fd);

/* Leaves all who wait: before the loop runs for the last time. */
void hr_live_link_done(struct hr_live_link *l);

#endif

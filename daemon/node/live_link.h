/* SPDX-License-Identifier: Apache-2.0 */
/*
 * live_link.h - sends pictures of a running job (live.h) to clients
 *
 * Purpose   Answers get_live (proto/control.proto) in the process that records the job, after the
 *           caller has checked the client's permission.
 * Limits    All requests within HR_LIVE_FRESH_MS get one picture. A client that does not read
 *           delays no other client. Beyond HR_LIVE_CLIENTS, the oldest connection is closed.
 * Owner     The structure that contains it. Loop thread only.
 */
#ifndef HEADRACE_DAEMON_NODE_LIVE_LINK_H
#define HEADRACE_DAEMON_NODE_LIVE_LINK_H

#include <uv.h>

#include "daemon/control/control.h"
#include "daemon/node/node.h"

#define HR_LIVE_CLIENTS	 8u
#define HR_LIVE_FRESH_MS 50u

struct hr_live_client;
struct hr_live_bytes;

struct hr_live_link {
	uv_loop_t *loop;
	struct hr_live_client *clients; /* newest first */
	struct hr_live_bytes *last;
	uint64_t last_ms, in_flight_ns; /* time and in_flight_ns of `last` */
};

void hr_live_link_init(struct hr_live_link *l, uv_loop_t *loop);

/* Answers a request. From now on, the function owns `fd`. */
void hr_live_link_take(struct hr_live_link *l, struct hr_node *n,
		       const Headrace__JobRequest *request, int fd);

/* Call it before the loop runs for the last time. */
void hr_live_link_done(struct hr_live_link *l);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * now.h - what a job did in the last interval, for the collector (Now in proto/wire.proto)
 *
 * Compares a picture of the job (daemon/engine/live.h) with the previous one.
 *
 * Owner     The process that records the job.
 * Threads   The loop's thread.
 * Cost      A picture: time in proportion to the number of its rows and files in use.
 */
#ifndef HEADRACE_DAEMON_NODE_NOW_H
#define HEADRACE_DAEMON_NODE_NOW_H

#include <stdint.h>

#include "daemon/base/now_message.h"
#include "daemon/node/node.h"
#include "proto/live.pb-c.h"

struct hr_live_picture;

struct hr_now {
	struct hr_live_picture *before; /* NULL: none was made yet */
	uint64_t made_ms;
	char user[256]; /* of the job; "": unknown */
};

/* Zeroed memory is a valid state. */
void hr_now_done(struct hr_now *w);

/*
 * Makes a message if HR_NOW_EVERY_MS have passed since the last one. Returns 0; -EAGAIN: it is too
 * early, or this is the first picture; -ENOMEM; -ESHUTDOWN: the job has ended.
 */
int hr_now_make(struct hr_now *w, struct hr_node *n, const struct hr_node_config *config,
		uint64_t now_ms, struct hr_now_message **ret);

/* Makes the message from two pictures, which it sorts. Returns 0 or -ENOMEM. */
int hr_now_compare(Headrace__LiveJob *before, Headrace__LiveJob *now, struct hr_now_message **ret);

#endif

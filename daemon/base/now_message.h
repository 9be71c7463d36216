/* SPDX-License-Identifier: Apache-2.0 */
/* now_message.h - a message Now (proto/wire.proto) on its way from the node to the uplink */
#ifndef HEADRACE_DAEMON_BASE_NOW_MESSAGE_H
#define HEADRACE_DAEMON_BASE_NOW_MESSAGE_H

#include <stdlib.h>

#include "common/arena.h"
#include "proto/wire.pb-c.h"

/* malloc'ed; the holder of the pointer owns it */
struct hr_now_message {
	Headrace__Now m; /* the uplink sets `channel` */
	struct hr_arena memory;
};

static inline void hr_now_message_free(struct hr_now_message *n)
{
	if (n)
		hr_arena_free(&n->memory);
	free(n);
}

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * private_asked.h - what the user of a private daemon may ask it, in place of `join` (control.h)
 *
 * Purpose   The same questions as the service of a node takes (daemon/control/requests.h), of its one job: `status`, `live`.
 * Owner     The caller, of struct hr_private_asked and all that it points to.
 * Threads   The loop's.
 */
#ifndef HEADRACE_DAEMON_PRIVATE_PRIVATE_ASKED_H
#define HEADRACE_DAEMON_PRIVATE_PRIVATE_ASKED_H

#include "daemon/node/live_link.h"
#include "daemon/control/private.h"
#include "daemon/private/private_uplink.h"

/* How fast it goes: between two looks that are a second or more apart. */
struct hr_private_pace {
	uint64_t at_ms; /* of the last one; 0: none yet */
	uint64_t events, bytes;
	uint64_t events_per_s, bytes_per_s;
};

struct hr_private_asked {
	const struct hr_private_config *config;
	struct hr_node *node;
	struct hr_private_uplink *uplink; /* NULL: the store is no spool */
	struct hr_live_link live;
	struct hr_private_pace pace;
};

/* To be called a few times a second. */
void hr_private_pace(struct hr_private_pace *p, const struct hr_node_stats *now, uint64_t now_ms);

/* Whether `m` is such a question. Then it is answered, over a descriptor of its own: the caller leaves `fd`. */
bool hr_private_asked(struct hr_private_asked *a, const struct hr_message *m, int fd);

#endif

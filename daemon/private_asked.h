/* SPDX-License-Identifier: Apache-2.0 */
/*
 * private_asked.h - what the user of a private daemon may ask it, in place of `join` (control.h)
 *
 * The same questions as the service of a node takes (service/requests.h), of its one job: `status`, `live`.
 */
#ifndef HEADRACE_DAEMON_PRIVATE_ASKED_H
#define HEADRACE_DAEMON_PRIVATE_ASKED_H

#include "daemon/live_link.h"
#include "daemon/private.h"

/* Whether `m` is such a question. Then it is answered, over a descriptor of its own: the caller leaves `fd`. */
bool hr_private_asked(struct hr_live_link *live, const struct hr_private_config *config,
		      struct hr_node *n, const struct hr_message *m, int fd);

#endif

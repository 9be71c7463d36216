/* SPDX-License-Identifier: Apache-2.0 */
/*
 * private_requests.h - requests to a private daemon about its job: get_status and get_live (proto/control.proto)
 *
 * Owner     The caller. Threads: the loop's.
 */
#ifndef HEADRACE_DAEMON_PRIVATE_PRIVATE_REQUESTS_H
#define HEADRACE_DAEMON_PRIVATE_PRIVATE_REQUESTS_H

#include "daemon/node/live_link.h"
#include "daemon/private/job_status.h"

/* Answers over `fd`, or a copy of it, which the caller closes; false: `m` is another message. */
bool hr_private_answer(struct hr_job_status *s, struct hr_live_link *live,
		       const Headrace__Control *m, int fd);

#endif

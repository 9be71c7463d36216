/* SPDX-License-Identifier: Apache-2.0 */
/* private_requests.h - a private headraced's answers to get_status and get_live */
#ifndef HEADRACE_DAEMON_PRIVATE_PRIVATE_REQUESTS_H
#define HEADRACE_DAEMON_PRIVATE_PRIVATE_REQUESTS_H

#include "daemon/node/live_link.h"
#include "daemon/private/job_status.h"

/* Answers `m` over `fd`, which the caller owns. False: it is another request. Loop thread. */
bool hr_private_answer(struct hr_job_status *s, struct hr_live_link *live,
		       const Headrace__Control *m, int fd);

#endif

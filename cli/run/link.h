/* SPDX-License-Identifier: Apache-2.0 */
/*
 * link.h - a run's connection to the private headraced of its job
 *
 * Purpose   Starts a headraced or joins the running one, joins again after its restarts, leaves.
 *
 *      hr_link_open --> LINKED --connection ends--> REJOINING --`joined`--> LINKED
 *                         |                           +--no connection--> GONE: CMD unrecorded
 *                         +--hr_link_leave--> CLOSED
 *
 * Owner     The caller owns struct hr_link; closing accepts a half-opened one.
 * Threads   One.
 */
#ifndef HEADRACE_CLI_RUN_LINK_H
#define HEADRACE_CLI_RUN_LINK_H

#include <stdint.h>
#include <sys/types.h>

#include "daemon/control/control.h"
#include "daemon/control/private.h"

enum hr_link_state { HR_LINK_CLOSED, HR_LINK_LINKED, HR_LINK_REJOINING, HR_LINK_GONE };

struct hr_link {
	enum hr_link_state state;
	int fd; /* readable: call hr_link_read */
	struct hr_private_names names;
	int rank;
	pid_t cmd;
	unsigned rejoins;
	bool leaving; /* CMD has ended */
	/* the last message received; after hr_link_open `joined`, after hr_link_leave `left` */
	Headrace__Control *last;
};

/*
 * Joins the headraced of the job, or starts `headraced` (a path) with `config` if none runs. Sets
 * config->names. *ret_error: the cause of a failure, malloc'ed; may be NULL.
 */
int hr_link_open(struct hr_link *link, struct hr_private_config *config, int rank,
		 const char *headraced, char **ret_error);

/* Sends the pid of CMD, which has started. */
void hr_link_started(struct hr_link *link, pid_t cmd);

/* Reads messages: prints notices, joins again after a restart of headraced. Does not wait. */
void hr_link_read(struct hr_link *link);

/*
 * Leaves: requests that headraced waits at most linger_ns for attached processes, and then
 * finishes. `status` is that of CMD, from wait(2). When interrupt_fd (a signalfd, or -1) becomes
 * readable, headraced stops waiting for processes; the second time, this function returns. On
 * success link->last is `left`, and the connection stays open if its `drains` is set. -ECONNRESET:
 * headraced has ended; -ETIMEDOUT: it does not answer; -EINTR: the second interrupt.
 */
int hr_link_leave(struct hr_link *link, uint64_t linger_ns, int status, int interrupt_fd);

void hr_link_close(struct hr_link *link);
void hr_link_done(struct hr_link *link); /* closes, and frees the last message */

#endif

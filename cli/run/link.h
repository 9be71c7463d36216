/* SPDX-License-Identifier: Apache-2.0 */
/*
 * link.h - a run's connection to the private headraced of its job
 *
 * Starts headraced or joins the running one, joins again if headraced restarts, and leaves.
 *
 *      hr_link_open --> LINKED --connection ends--> REJOINING --`joined`--> LINKED
 *                         |                           +--no connection--> GONE: CMD is not recorded
 *                         +--hr_link_leave--> CLOSED
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
	int fd; /* if readable: call hr_link_read */
	struct hr_private_names names;
	int rank;
	pid_t cmd;
	unsigned rejoins;
	bool leaving; /* hr_link_leave was called */
	/* last received message: `joined` after hr_link_open, `left` after hr_link_leave */
	Headrace__Control *last;
};

/*
 * Joins the headraced of the job, or starts the program `headraced` with `config`. Sets
 * config->names. *ret_error: why this failed, malloc'ed or NULL.
 */
int hr_link_open(struct hr_link *link, struct hr_private_config *config, int rank,
		 const char *headraced, char **ret_error);

/* Sends the pid of CMD, which has started. */
void hr_link_started(struct hr_link *link, pid_t cmd);

/* Reads messages without waiting. Prints notices, and joins again if headraced has restarted. */
void hr_link_read(struct hr_link *link);

/*
 * Ends the recording: headraced waits at most linger_ns for attached processes, then finishes.
 * `status`: wait status of CMD. If interrupt_fd (a signalfd, or -1) becomes readable, headraced
 * stops waiting; the second time, this function returns -EINTR.
 * Returns 0 if link->last is `left`; the connection stays open if `drains` is set. -ECONNRESET:
 * headraced has ended; -ETIMEDOUT: it does not answer.
 */
int hr_link_leave(struct hr_link *link, uint64_t linger_ns, int status, int interrupt_fd);

void hr_link_close(struct hr_link *link);
/* also accepts a link that is not open */
void hr_link_done(struct hr_link *link);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * link.h - a run's connection to the private headraced of its job
 *
 * Purpose   Starts the daemon or joins the one that is there, survives its restarts, leaves.
 *
 *      hr_link_open --> LINKED --connection ends--> REJOINING --ready--> LINKED
 *                         |                           +--nobody listens--> GONE: CMD unrecorded
 *                         +--hr_link_leave--> CLOSED
 *
 * Owner     The caller owns struct hr_link; hr_link_close and hr_link_done accept a half-opened one.
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
	Headrace__Control
	    *last; /* received; after hr_link_open: `joined`, after hr_link_leave: `left` */
};

/*
 * Joins; starts `headraced` (path) with `config` when nobody is there. Fills config->names. On
 * failure *ret_error (malloc'ed, may be NULL) says what is wrong.
 */
int hr_link_open(struct hr_link *link, struct hr_private_config *config, int rank,
		 const char *headraced, char **ret_error);

/* CMD runs. */
void hr_link_started(struct hr_link *link, pid_t cmd);

/* Something came from the daemon: passes its notices on to the user, rejoins after a restart. Never
 * waits. */
void hr_link_read(struct hr_link *link);

/*
 * Leaves: asks the daemon to wait at most linger_ns for attached processes, then to finish; `status` is CMD's, from wait(2). When
 * interrupt_fd (a signalfd, or -1) becomes readable it lingers no longer; the second time it waits
 * no longer at all. link->last is `left` on success, and the connection stays open when its `drains` is set. -ECONNRESET: there is no daemon left;
 * -ETIMEDOUT: it does not answer; -EINTR.
 */
int hr_link_leave(struct hr_link *link, uint64_t linger_ns, int status, int interrupt_fd);

void hr_link_close(struct hr_link *link);
void hr_link_done(struct hr_link *link); /* closes, and frees the last message */

#endif

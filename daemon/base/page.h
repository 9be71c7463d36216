/* SPDX-License-Identifier: Apache-2.0 */
/*
 * page.h - the node page (proto/abi.h): the doorbell for clients, and the heartbeat that they check
 *
 * The node owns it, and its threads write to it. The descriptor store keeps it for the next daemon.
 */
#ifndef HEADRACE_DAEMON_BASE_PAGE_H
#define HEADRACE_DAEMON_BASE_PAGE_H

#include <stdbool.h>
#include <stddef.h>

#include "common/fdstore.h"
#include "proto/abi.h"

struct hr_page {
	struct hr_node_page *at;
	int fd;
	int shared_fd; /* the same page, read-only, for clients */
	bool kept;     /* true: it is the page of the previous daemon */
};

void hr_page_init(struct hr_page *p);

/* Opens the page of the previous daemon, or makes one. Call hr_page_done also after a failure. */
int hr_page_open(struct hr_page *p, struct hr_inherited *list, size_t n);

/* Call it if no daemon follows. Removes the page from the descriptor store. */
void hr_page_forget(void);
void hr_page_done(struct hr_page *p);

#endif

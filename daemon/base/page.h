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
	int shared_fd; /* a read-only descriptor of the page, for clients */
	bool kept;     /* the page comes from the previous daemon */
};

void hr_page_init(struct hr_page *p);

/* Opens the previous daemon's page, or makes one. Call hr_page_done even after a failure. */
int hr_page_open(struct hr_page *p, struct hr_inherited *list, size_t n);

/* Returns whether a previous daemon had a page, even if that page cannot be used. */
bool hr_page_is_kept(const struct hr_inherited *list, size_t n);

/* Removes the page from the descriptor store. Call it if no daemon follows. */
void hr_page_forget(void);
void hr_page_done(struct hr_page *p);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * page.h - the node page (proto/abi.h): the bell that clients ring, and the beat that they see
 *
 * Owner     The node; its threads store. The page is in the descriptor store, too: the next daemon goes on with it.
 * Lifetime  hr_page_init .. hr_page_done.
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
	int shared_fd; /* of the same page, for clients: it can only be read */
	bool kept;     /* it is the page of the daemon before this one */
};

void hr_page_init(struct hr_page *p);

/* The one that clients from before a restart look at, or a new one. 0 or -errno: hr_page_done is called in either case. */
int hr_page_open(struct hr_page *p, struct hr_inherited *list, size_t n);

/* There is no next daemon. */
void hr_page_forget(void);
void hr_page_done(struct hr_page *p);

#endif

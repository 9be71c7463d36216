/* SPDX-License-Identifier: Apache-2.0 */
/*
 * private_health.h - what a node's runs want to know before their job ends, each thing once
 *
 * Pure function over the caller's memory.
 */
#ifndef HEADRACE_DAEMON_PRIVATE_PRIVATE_HEALTH_H
#define HEADRACE_DAEMON_PRIVATE_PRIVATE_HEALTH_H

#include "daemon/node/node.h"

struct hr_health { /* as last told */
	int store_error;
	bool counters_only, journal_in_memory, refused;
};

/* The next piece of news, a line; false: there is none. `spool`: the store is one. */
bool hr_health_news(struct hr_health *told, const struct hr_node_stats *now, bool spool, char *ret,
		    size_t bytes);

#endif

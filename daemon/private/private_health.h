/* SPDX-License-Identifier: Apache-2.0 */
/*
 * private_health.h - notices to the runs of a job about problems of the recording; each problem is
 * reported once. No state.
 */
#ifndef HEADRACE_DAEMON_PRIVATE_PRIVATE_HEALTH_H
#define HEADRACE_DAEMON_PRIVATE_PRIVATE_HEALTH_H

#include "daemon/node/node.h"

struct hr_reported { /* the values that notices have reported */
	int store_error;
	bool counters_only, journal_in_memory, refused;
};

/* Writes the next notice (a line). False: there is none. `spool`: the store is a spool. */
bool hr_health_next_notice(struct hr_reported *reported, const struct hr_node_stats *now,
			   bool spool, char *ret, size_t bytes);

#endif

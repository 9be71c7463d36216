/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/private/private_health.h"

#include <stdio.h>
#include <string.h>

static void store_news(int error, bool spool, char *ret, size_t bytes)
{
	const char *what = spool ? "spool" : "store";

	if (error != 0)
		snprintf(ret, bytes,
			 "the %s cannot be written (%s): keeping what fits in memory, trying again",
			 what, strerrordesc_np(-error));
	else
		snprintf(ret, bytes, "the %s is written again", what);
}

static bool first_time(bool now, bool *told)
{
	bool first = now && !*told;

	*told = *told || now;
	return first;
}

bool hr_health_news(struct hr_health *told, const struct hr_node_stats *now, bool spool, char *ret,
		    size_t bytes)
{
	if (now->store_error != told->store_error) {
		told->store_error = now->store_error;
		store_news(now->store_error, spool, ret, bytes);
		return true;
	}
	if (first_time(now->counters_only, &told->counters_only))
		return snprintf(
			   ret, bytes,
			   "the store reached --max-size: from here on only counters are kept, no "
			   "events") > 0;
	if (first_time(now->journal_in_memory, &told->journal_in_memory))
		return snprintf(ret, bytes,
				"no room for a journal on disk, it is kept in memory: a kill of "
				"headraced "
				"would lose what is not stored yet") > 0;
	if (first_time(now->refused > 0, &told->refused))
		return snprintf(
			   ret, bytes,
			   "some processes or threads are not recorded: there are too many, or no "
			   "memory for their rings") > 0;
	return false;
}

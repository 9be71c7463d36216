/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/private/private_health.h"

#include <stdio.h>
#include <string.h>

static void store_news(int error, bool spool, char *ret, size_t bytes)
{
	const char *what = spool ? "spool" : "store";

	if (error != 0)
		snprintf(ret, bytes,
			 "cannot write the %s (%s): keeping data in memory as far as it fits, and "
			 "trying again",
			 what, strerrordesc_np(-error));
	else
		snprintf(ret, bytes, "the %s is writable again", what);
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
		return snprintf(ret, bytes,
				"the store reached --max-size: from now on only counters are "
				"recorded, no events") > 0;
	if (first_time(now->journal_in_memory, &told->journal_in_memory))
		return snprintf(ret, bytes,
				"no space for the journal on disk: it is in memory, and a kill of "
				"headraced would lose data that is not stored yet") > 0;
	if (first_time(now->refused > 0, &told->refused))
		return snprintf(ret, bytes,
				"some processes or threads are not recorded: too many, or too "
				"little memory for their rings") > 0;
	return false;
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/private/private_health.h"

#include <stdio.h>
#include <string.h>

#include "daemon/spool/appender.h"

static void store_notice(int error, bool spool, char *ret, size_t bytes)
{
	const char *what = spool ? "spool" : "store";

	if (error != 0)
		snprintf(ret, bytes,
			 "cannot write to the %s (%s): headraced keeps up to %u MiB in memory and "
			 "tries again every second; beyond that, events are lost",
			 what, strerrordesc_np(-error), HR_KEPT_BYTES >> 20);
	else
		snprintf(ret, bytes, "headraced can write to the %s again", what);
}

static bool first_time(bool now, bool *reported)
{
	bool first = now && !*reported;

	*reported = *reported || now;
	return first;
}

bool hr_health_next_notice(struct hr_reported *reported, const struct hr_node_stats *now,
			   bool spool, char *ret, size_t bytes)
{
	const char *text;

	if (now->store_error != reported->store_error) {
		reported->store_error = now->store_error;
		store_notice(now->store_error, spool, ret, bytes);
		return true;
	}
	if (first_time(now->counters_only, &reported->counters_only))
		text = "the store reached --max-size: from now on headraced keeps counters, but no "
		       "events";
	else if (first_time(now->journal_in_memory, &reported->journal_in_memory))
		text =
		    "no room on disk for the journal, so headraced keeps it in memory: a kill of "
		    "headraced would lose events that are not stored yet; free some space";
	else if (first_time(now->refused > 0, &reported->refused))
		text = "some processes or threads are not recorded: there are too many, or too "
		       "little memory for their rings; the table losses counts them (limit)";
	else
		return false;
	snprintf(ret, bytes, "%s", text);
	return true;
}

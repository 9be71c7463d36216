/* SPDX-License-Identifier: Apache-2.0 */
/*
 * policy.h - decides whether a job is recorded, and at which level
 *
 *      policy = asked             all jobs:                   record | asked | off
 *      partition = gpu=trace      jobs in that partition:     record | counters | trace | asked | off
 *      user = alice=off           jobs of that user:          the same; a name or a uid
 *
 * A user rule has priority over a partition rule, and that over `policy`. A level of a rule has
 * priority over `level` of the configuration; `job begin --level` has priority over both. Users
 * choose with HEADRACE=off or HEADRACE=on in the environment of a job: off always works; `asked`
 * records only jobs with on.
 *
 * Threads   Any; pure, but for the user database.
 */
#ifndef HEADRACE_DAEMON_SERVICE_POLICY_H
#define HEADRACE_DAEMON_SERVICE_POLICY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* In the order of the choices of `policy`. */
enum hr_policy { HR_POLICY_RECORD, HR_POLICY_ASKED, HR_POLICY_OFF };

struct hr_policy_rules {
	unsigned policy;	/* enum hr_policy, for all jobs */
	const char *partitions; /* "gpu=trace,debug=off"; NULL or "": no rules */
	const char *users;
};

struct hr_decision {
	enum hr_policy policy;
	int level; /* enum hr_level; -1: no rule sets it */
};

/* `partition` may be NULL. */
struct hr_decision hr_policy_decide(const struct hr_policy_rules *rules, uint32_t uid,
				    const char *partition);

/* Is each rule NAME=WORD, with one of the words above? */
bool hr_policy_valid(const char *rules);

/* Is there a rule for an unknown user? *ret: the first such name, truncated to `bytes`. */
bool hr_policy_unknown_user(const char *rules, char *ret, size_t bytes);

/* "record", "asked" or "off". */
const char *hr_policy_name(enum hr_policy policy);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * policy.h - whether a job is recorded, and at which level: what the site, the partition and the user say
 *
 *      policy = asked                    of all jobs:            record | asked | off
 *      partition = gpu=trace             of those in there:      record | counters | trace | asked | off
 *      user = alice=off                  of hers, wherever:      the same; a name or a uid
 *
 * The most particular one counts: user, partition, policy. What a level says comes before `level` of the configuration, and after
 * the one that `job begin --level` names. A user's own word is HEADRACE=off or HEADRACE=on in the environment of the job: off is
 * always heard; on is what `asked` waits for.
 *
 * Threads   Any; pure, but for the user database.
 */
#ifndef HEADRACE_DAEMON_SERVICE_POLICY_H
#define HEADRACE_DAEMON_SERVICE_POLICY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum hr_policy {
	HR_POLICY_RECORD,
	HR_POLICY_ASKED,
	HR_POLICY_OFF
}; /* as the choices of `policy` */

struct hr_policy_rules {
	unsigned policy;	/* enum hr_policy, of all */
	const char *partitions; /* "gpu=trace,debug=off"; NULL or "": no rules */
	const char *users;
};

struct hr_decision {
	enum hr_policy policy;
	int level; /* enum hr_level; -1: nobody said one */
};

/* `partition` may be NULL. */
struct hr_decision hr_policy_decide(const struct hr_policy_rules *rules, uint32_t uid,
				    const char *partition);

/* Is each rule NAME=WORD with a word that is known? */
bool hr_policy_valid(const char *rules);

/* Is there a rule about a user whom the database does not know? The first such name, cut to the room. */
bool hr_policy_unknown_user(const char *rules, char *ret, size_t bytes);

/* "record", "asked" or "off". */
const char *hr_policy_name(enum hr_policy policy);

#endif

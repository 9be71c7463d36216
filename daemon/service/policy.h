/* SPDX-License-Identifier: Apache-2.0 */
/*
 * policy.h - decides whether a job is recorded, and at which level
 *
 *      policy = asked            all jobs: record | asked | off
 *      partition = gpu=trace     jobs in that partition: record | counters | trace | asked | off
 *      user = alice=off          jobs of that user (a name or a uid): the same words
 *
 * A user rule overrides a partition rule, and both override `policy`. The level of a rule overrides
 * the configuration's `level`, and `job begin --level` overrides both. Users choose in a job's
 * environment: HEADRACE=off always works, and `asked` records only jobs with HEADRACE=on.
 *
 * Threads   Any; the functions only read the user database.
 */
#ifndef HEADRACE_DAEMON_SERVICE_POLICY_H
#define HEADRACE_DAEMON_SERVICE_POLICY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The order is that of the choices of the configuration key `policy`. */
enum hr_policy { HR_POLICY_RECORD, HR_POLICY_ASKED, HR_POLICY_OFF };

struct hr_policy_rules {
	unsigned policy;	/* enum hr_policy; applies to all jobs */
	const char *partitions; /* "gpu=trace,debug=off"; NULL or "": no rules */
	const char *users;
};

struct hr_decision {
	enum hr_policy policy;
	int level; /* enum hr_level; -1: no rule has a level */
};

/* Decides for a job of user `uid`. `partition` may be NULL. */
struct hr_decision hr_policy_decide(const struct hr_policy_rules *rules, uint32_t uid,
				    const char *partition);

/* Returns whether all rules have the form NAME=WORD, with a word of the table above. */
bool hr_policy_valid(const char *rules);

/* Returns whether a rule names an unknown user. *ret: the first such name, possibly cut. */
bool hr_policy_unknown_user(const char *rules, char *ret, size_t bytes);

/* Returns "record", "asked" or "off". */
const char *hr_policy_name(enum hr_policy policy);

#endif

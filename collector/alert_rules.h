/* SPDX-License-Identifier: Apache-2.0 */
/*
 * alert_rules.h - the rules of alerts, as the configuration has them (docs/alerts.md)
 *
 *      waiting > 80% for 5m        KIND > LIMIT [for TIME]
 *
 * Pure functions; the caller owns the rules.
 */
#ifndef HEADRACE_COLLECTOR_ALERT_RULES_H
#define HEADRACE_COLLECTOR_ALERT_RULES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* X(NAME, name, what the limit must be, an example) */
#define HR_ALERT_KINDS(X)                                                                          \
	X(WAITING, waiting, "from 1% to 99%", "waiting > 80% for 5m")                              \
	X(METADATA, metadata, "a number of operations per second, from 1 to 1000000000",           \
	  "metadata > 50000 for 10s")                                                              \
	X(STUCK, stuck, "a time with a unit, from 5s to 30d", "stuck > 60s")                       \
	X(SILENT, silent, "a time with a unit, from 5s to 30d", "silent > 20s")                    \
	X(CHECKPOINT, checkpoint, "from 1.1x to 1000x", "checkpoint > 3x")

enum hr_alert_kind {
#define HR__ALERT_KIND(NAME, name, limit, example) HR_ALERT_##NAME,
	HR_ALERT_KINDS(HR__ALERT_KIND)
#undef HR__ALERT_KIND
	    HR_ALERT_N_KINDS
};

const char *hr_alert_kind_name(enum hr_alert_kind kind);

#define HR_ALERT_RULES_MOST 32u
#define HR_ALERT_RULE_BYTES 80u

struct hr_alert_rule {
	enum hr_alert_kind kind;
	/*
	 * a share (waiting), operations per second (metadata), seconds (stuck, silent), a multiple
	 * of the usual time (checkpoint)
	 */
	double limit;
	uint64_t for_ms;
	char text[HR_ALERT_RULE_BYTES]; /* as in the configuration, with single blanks */
};

struct hr_alert_rules {
	struct hr_alert_rule list[HR_ALERT_RULES_MOST];
	size_t n;
};

/*
 * Reads a list of rules with commas; NULL and "" have none. Calls `report` with each mistake, and
 * then returns -EINVAL.
 */
int hr_alert_rules_parse(const char *list, struct hr_alert_rules *ret,
			 void (*report)(const char *text));

/* Whether the list has a rule with the same text. */
bool hr_alert_rules_have(const struct hr_alert_rules *rules, const struct hr_alert_rule *rule);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/service/policy.h"

#include <stdio.h>
#include <string.h>

#include "common/text.h"
#include "common/users.h"
#include "proto/abi.h"

static const struct word {
	const char *text;
	struct hr_decision means;
} words[] = {
    {"record", {HR_POLICY_RECORD, -1}},
    {"counters", {HR_POLICY_RECORD, HR_LEVEL_COUNTERS}},
    {"trace", {HR_POLICY_RECORD, HR_LEVEL_TRACE}},
    {"asked", {HR_POLICY_ASKED, -1}},
    {"off", {HR_POLICY_OFF, -1}},
};

static bool word_of(const char *text, size_t bytes, struct hr_decision *ret)
{
	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
		if (strlen(words[i].text) != bytes || memcmp(text, words[i].text, bytes) != 0)
			continue;
		*ret = words[i].means;
		return true;
	}
	return false;
}

struct rule {
	const char *name;
	size_t name_bytes;
	struct hr_decision means;
};

/* Reads the rule at *at, and advances *at. Returns 1; 0: there is none; -1: the text is no rule. */
static int next_rule(const char **at, struct rule *ret)
{
	size_t bytes = strcspn(*at, ",");
	const char *equals = memchr(*at, '=', bytes);

	if (bytes == 0 && **at == '\0')
		return 0;
	if (!equals || equals == *at ||
	    !word_of(equals + 1, bytes - (size_t)(equals + 1 - *at), &ret->means))
		return -1;
	ret->name = *at;
	ret->name_bytes = (size_t)(equals - *at);
	*at += bytes + ((*at)[bytes] == ',');
	return 1;
}

/* Finds the last rule for a name: as in a configuration, a later rule replaces an earlier one. */
static bool policy_find(const char *rules, const char *name, struct hr_decision *ret)
{
	const char *at = rules ? rules : "";
	struct rule rule;
	bool found = false;

	while (next_rule(&at, &rule) > 0) {
		if (strlen(name) != rule.name_bytes ||
		    memcmp(name, rule.name, rule.name_bytes) != 0)
			continue;
		*ret = rule.means;
		found = true;
	}
	return found;
}

struct hr_decision hr_policy_decide(const struct hr_policy_rules *rules, uint32_t uid,
				    const char *partition)
{
	struct hr_decision d = {(enum hr_policy)rules->policy, -1};
	struct hr_user user;
	char number[16];

	if (partition)
		(void)policy_find(rules->partitions, partition, &d);
	if (!hr_text_given(rules->users))
		return d;
	snprintf(number, sizeof(number), "%u", uid);
	if (!policy_find(rules->users, number, &d) && hr_user_by_id(uid, &user))
		(void)policy_find(rules->users, user.name, &d);
	return d;
}

bool hr_policy_valid(const char *rules)
{
	const char *at = rules ? rules : "";
	struct rule rule;
	int r;

	while ((r = next_rule(&at, &rule)) > 0)
		;
	return r == 0;
}

bool hr_policy_unknown_user(const char *rules, char *ret, size_t bytes)
{
	const char *at = rules ? rules : "";
	struct hr_user user;
	struct rule rule;
	uint64_t uid;

	while (next_rule(&at, &rule) > 0) {
		snprintf(ret, bytes, "%.*s", (int)rule.name_bytes, rule.name);
		if (hr_text_parse_uint(ret, UINT32_MAX, &uid) < 0 && !hr_user_by_name(ret, &user))
			return true;
	}
	return false;
}

const char *hr_policy_name(enum hr_policy policy)
{
	static const char *const names[] = {"record", "asked", "off"};

	return names[policy];
}

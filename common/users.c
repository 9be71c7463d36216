/* SPDX-License-Identifier: Apache-2.0 */
#include "common/users.h"

#include <grp.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>

#include "common/text.h"

#define ENTRY_BYTES (64u << 10) /* the entry of a group lists its members */
#define GROUPS_MAX  4096

static bool users_find(const char *name, uid_t uid, struct hr_user *ret)
{
	char *buf = malloc(ENTRY_BYTES);
	struct passwd entry, *found = NULL;
	bool whole = false;

	if (buf && name)
		(void)getpwnam_r(name, &entry, buf, ENTRY_BYTES, &found);
	else if (buf)
		(void)getpwuid_r(uid, &entry, buf, ENTRY_BYTES, &found);
	if (found) {
		ret->uid = found->pw_uid;
		ret->gid = found->pw_gid;
		whole = snprintf(ret->name, sizeof(ret->name), "%s", found->pw_name) <
			(int)sizeof(ret->name);
	}
	free(buf);
	return whole;
}

bool hr_user_by_id(uid_t uid, struct hr_user *ret)
{
	return users_find(NULL, uid, ret);
}

bool hr_user_by_name(const char *name, struct hr_user *ret)
{
	return users_find(name, 0, ret);
}

bool hr_group_by_name(const char *name, gid_t *ret)
{
	char *buf = malloc(ENTRY_BYTES);
	struct group entry, *found = NULL;

	if (buf)
		(void)getgrnam_r(name, &entry, buf, ENTRY_BYTES, &found);
	if (found)
		*ret = found->gr_gid;
	free(buf);
	return found != NULL;
}

static bool users_in_group(const struct hr_user *user, gid_t group)
{
	int n = GROUPS_MAX;
	gid_t *groups = calloc((size_t)n, sizeof(*groups));
	bool found = false;

	if (groups && getgrouplist(user->name, user->gid, groups, &n) >= 0)
		for (int i = 0; i < n && !found; i++)
			found = groups[i] == group;
	free(groups);
	return found;
}

bool hr_user_is_operator(uid_t uid, const char *operators)
{
	struct hr_user user;
	gid_t group;

	if (uid == 0)
		return true;
	return hr_text_given(operators) && hr_group_by_name(operators, &group) &&
	       hr_user_by_id(uid, &user) && users_in_group(&user, group);
}

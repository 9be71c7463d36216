/* SPDX-License-Identifier: Apache-2.0 */
/*
 * users.h - the user database: users and their groups
 *
 * Each call reads the database again (files, LDAP, sssd), because groups change while daemons run.
 * Any thread.
 */
#ifndef HEADRACE_COMMON_USERS_H
#define HEADRACE_COMMON_USERS_H

#include <stdbool.h>
#include <sys/types.h>

struct hr_user {
	uid_t uid;
	gid_t gid;
	char name[256];
};

/* False: no such user or group exists, or the user database does not answer. */
bool hr_user_by_id(uid_t uid, struct hr_user *ret);
bool hr_user_by_name(const char *name, struct hr_user *ret);
bool hr_group_by_name(const char *name, gid_t *ret);

/*
 * Whether uid may control the jobs of all users: it is root, or in the group `operators`. NULL and
 * "" mean no group.
 */
bool hr_user_is_operator(uid_t uid, const char *operators);

#endif

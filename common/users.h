/* SPDX-License-Identifier: Apache-2.0 */
/*
 * users.h - the user database: who somebody is, and in which group
 *
 * Purpose   Each call asks anew (files, LDAP, sssd): people are moved between groups while daemons run.
 * Threads   Any.
 */
#ifndef HEADRACE_COMMON_USERS_H
#define HEADRACE_COMMON_USERS_H

#include <stdbool.h>
#include <sys/types.h>

struct hr_user {
	uid_t uid;
	gid_t gid; /* the primary group */
	char name[256];
};

/* False: there is none, or the database does not answer. */
bool hr_user_by_id(uid_t uid, struct hr_user *ret);
bool hr_user_by_name(const char *name, struct hr_user *ret);
bool hr_group_by_name(const char *name, gid_t *ret);

bool hr_user_in_group(const struct hr_user *user, gid_t group);

/* May this uid see and control what is everybody's? Root, and members of the group `operators` (NULL or "": nobody else). */
bool hr_user_is_operator(uid_t uid, const char *operators);

#endif

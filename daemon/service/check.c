/* SPDX-License-Identifier: Apache-2.0 */
/* --check-config: checks users, groups and files with the rights of the user who runs the check. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/text.h"
#include "common/users.h"
#include "daemon/base/privacy.h"
#include "daemon/service/config.h"
#include "daemon/service/policy.h"
#include "net/tls.h"

static bool check_tls(const struct hr_service_config *c, void (*report)(const char *text))
{
	const struct hr_tls_files files = {.cert = c->tls_cert, .key = c->tls_key, .ca = c->tls_ca};
	struct hr_tls *tls = NULL;
	char *error = NULL;
	int r;

	if (!hr_text_given(c->tls_cert) || !hr_text_given(c->tls_key) || !hr_text_given(c->tls_ca))
		return true;
	r = hr_tls_new(&files, false, &tls, &error);
	if (r < 0)
		report(error ? error : "the certificates cannot be loaded");
	free(error);
	hr_tls_unref(tls);
	return r == 0;
}

static bool check_key(const struct hr_service_config *c, void (*report)(const char *text))
{
	uint8_t key[32];
	char *error = NULL;
	bool good;

	if (!hr_text_given(c->privacy_key))
		return true;
	(void)hr_privacy_key(c->privacy_key, key, &error);
	good = !error;
	if (error)
		report(error);
	free(error);
	return good;
}

static bool check_operators(const struct hr_service_config *c, void (*report)(const char *text))
{
	char text[320];
	gid_t group;

	if (!hr_text_given(c->operators) || hr_group_by_name(c->operators, &group))
		return true;
	snprintf(text, sizeof(text), "operators: there is no group %.256s", c->operators);
	report(text);
	return false;
}

/* Checks the users that rules name, because the service ignores the rule of an unknown user. */
static bool check_users(const struct hr_service_config *c, void (*report)(const char *text))
{
	char name[256], text[320];

	if (!hr_policy_unknown_user(c->policy_users, name, sizeof(name)))
		return true;
	snprintf(text, sizeof(text), "user: there is no user %s", name);
	report(text);
	return false;
}

/* Returns whether headraced can use the spool folder, or can make it. */
static bool check_spool(const struct hr_service_config *c, void (*report)(const char *text))
{
	char *parent, *slash, *text = NULL;
	bool good;

	if (!hr_text_given(c->spool) || access(c->spool, W_OK | X_OK) == 0)
		return true;
	parent = errno == ENOENT ? strdup(c->spool) : NULL;
	slash = parent ? strrchr(parent, '/') : NULL;
	if (slash)
		slash[slash == parent] = '\0';
	good = slash && access(parent, W_OK | X_OK) == 0;
	free(parent);
	if (good)
		return true;
	hr_text_fail(-errno, &text, "spool: cannot write to %s: %s", c->spool,
		     strerrordesc_np(errno));
	report(text ? text : "spool: cannot write to it");
	free(text);
	return false;
}

bool hr_service_check(const struct hr_service_config *c, void (*report)(const char *text))
{
	bool good = check_tls(c, report);

	good &= check_key(c, report);
	good &= check_operators(c, report);
	good &= check_users(c, report);
	good &= check_spool(c, report);
	return good;
}

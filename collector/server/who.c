/* SPDX-License-Identifier: Apache-2.0 */
#include "collector/server/who.h"

#include <errno.h>
#include <grp.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "net/munge.h"
#include "common/text.h"

#define OU_NODE "headrace-node"
#define OU_USER "headrace-user"
#define OU_CLIENT                                                                                  \
	"headrace-client" /* of a machine that users share: MUNGE says which of them it is */
#define DATABASE_BYTES (64u << 10) /* of an entry of the user database: groups list their members */
#define GROUPS_MAX     4096

/* ---- the user database ----------------------------------------------------------------------- */

/* An entry by uid, or by name when that is given. False: there is none. `buf` holds its texts. */
static bool find_user(const char *name, uid_t uid, struct passwd *ret, char buf[DATABASE_BYTES])
{
	struct passwd *found = NULL;

	if (name)
		(void)getpwnam_r(name, ret, buf, DATABASE_BYTES, &found);
	else
		(void)getpwuid_r(uid, ret, buf, DATABASE_BYTES, &found);
	return found != NULL;
}

static bool find_group(const char *name, gid_t *ret, char buf[DATABASE_BYTES])
{
	struct group group, *found = NULL;

	(void)getgrnam_r(name, &group, buf, DATABASE_BYTES, &found);
	if (found)
		*ret = group.gr_gid;
	return found != NULL;
}

static bool in_group(const struct passwd *user, gid_t group)
{
	int n = GROUPS_MAX;
	gid_t *groups = calloc((size_t)n, sizeof(*groups));
	bool found = false;

	if (groups && getgrouplist(user->pw_name, user->pw_gid, groups, &n) >= 0)
		for (int i = 0; i < n && !found; i++)
			found = groups[i] == group;
	free(groups);
	return found;
}

/* ---- users and nodes ------------------------------------------------------------------------- */

static void be_user(const struct hr_who_rules *rules, uid_t uid, struct hr_who *w, char *buf,
		    char *more)
{
	struct passwd user;
	gid_t group;
	bool named = find_user(NULL, uid, &user, buf);

	w->user = true;
	w->uid = uid;
	w->any_node = w->operator_ = uid == 0 || uid == geteuid();
	if (!w->operator_ && named && rules->operators && *rules->operators)
		w->operator_ = find_group(rules->operators, &group, more) && in_group(&user, group);
	if (named)
		snprintf(w->text, sizeof(w->text), "%s %.255s (%u)",
			 w->operator_ ? "operator" : "user", user.pw_name, uid);
	else
		snprintf(w->text, sizeof(w->text), "%s %u", w->operator_ ? "operator" : "user",
			 uid);
}

static void be_node(const struct hr_conn_peer *peer, struct hr_who *w)
{
	w->one_node = true;
	snprintf(w->node, sizeof(w->node), "%s", peer->cn);
	snprintf(w->text, sizeof(w->text), "node %s", peer->cn);
}

static int by_credential(const struct hr_who_rules *rules, const char *credential, uid_t *ret,
			 char **ret_error)
{
	char *error = NULL;
	uint32_t uid, gid;
	int r = hr_munge_decode(rules->munge_socket, credential, &uid, &gid, &error);

	if (r < 0)
		(void)hr_text_fail(-EACCES, ret_error, "the MUNGE credential is not accepted: %s",
				   error ? error : strerrordesc_np(-r));
	else
		*ret = uid;
	free(error);
	return r < 0 ? -EACCES : 0;
}

static int by_certificate(const struct hr_conn_peer *peer, uid_t *ret, char *buf, char **ret_error)
{
	struct passwd user;

	if (strcmp(peer->ou, OU_CLIENT) == 0)
		return hr_text_fail(
		    -EACCES, ret_error,
		    "the certificate of \"%s\" (" OU_CLIENT ") does not say which user this is: "
		    "a MUNGE credential does (munge = yes here, libmunge and munged there)",
		    peer->cn);
	if (strcmp(peer->ou, OU_USER) != 0 || peer->cn[0] == '\0')
		return hr_text_fail(-EACCES, ret_error,
				    "the certificate of CN \"%s\" has OU \"%s\"; " OU_NODE
				    " may stream and " OU_USER
				    " may ask (scripts/make-ca makes such)",
				    peer->cn, peer->ou);
	if (!find_user(peer->cn, 0, &user, buf))
		return hr_text_fail(-EACCES, ret_error,
				    "the certificate is of user \"%s\", whom the collector's user "
				    "database does not know",
				    peer->cn);
	*ret = user.pw_uid;
	return 0;
}

/* Over plain TCP, or a local socket. 1: by nobody known. */
static int by_kernel(const struct hr_who_rules *rules, const struct hr_conn_peer *peer, uid_t *ret,
		     char **ret_error)
{
	if (peer->loopback && peer->uid_known) {
		*ret = peer->uid;
		return 0;
	}
	if (rules->plain_anywhere)
		return 1;
	if (peer->loopback)
		return hr_text_fail(
		    -EACCES, ret_error,
		    "the kernel does not say whose connection this is (another network "
		    "namespace?); use TLS, or set plain = yes in the collector's "
		    "configuration");
	return hr_text_fail(
	    -EACCES, ret_error,
	    "plain TCP from another machine is refused, with a MUNGE credential too; give "
	    "this side a certificate (--tls-cert, --tls-key, --tls-ca; for run and query "
	    "HEADRACE_TLS_CERT, _KEY, _CA), or set plain = yes in the collector's "
	    "configuration");
}

static int decide(const struct hr_who_rules *rules, const struct hr_conn_peer *peer,
		  const char *credential, struct hr_who *w, char *buf, char **ret_error)
{
	bool credible = rules->munge && credential && *credential;
	uid_t uid = 0;
	int r;

	if (peer->tls && strcmp(peer->ou, OU_NODE) == 0 && peer->cn[0] != '\0') {
		r = credible ? by_credential(rules, credential, &uid, ret_error) : 0;
		if (r == 0 && uid != 0)
			be_user(rules, uid, w, buf, buf + DATABASE_BYTES);
		else if (r == 0) /* root there is the node, and no more */
			be_node(peer, w);
		return r;
	}
	if (!peer->tls) {
		r = by_kernel(rules, peer, &uid, ret_error);
		if (r < 0)
			return r;
	} else {
		r = credible ? 0 : by_certificate(peer, &uid, buf, ret_error);
	}
	if (credible)
		r = by_credential(rules, credential, &uid, ret_error);
	if (r < 0)
		return r;
	if (r == 0) {
		be_user(rules, uid, w, buf, buf + DATABASE_BYTES);
	} else {
		w->nobody = true;
		snprintf(w->text, sizeof(w->text), "an unknown peer");
	}
	return 0;
}

int hr_who_decide(const struct hr_who_rules *rules, const struct hr_conn_peer *peer,
		  const char *credential, struct hr_who *ret, char **ret_error)
{
	char *buf = malloc(2 * (size_t)DATABASE_BYTES);
	struct hr_who w = {0};
	int r;

	*ret_error = NULL;
	if (!buf)
		return -ENOMEM;
	r = decide(rules, peer, credential, &w, buf, ret_error);
	free(buf);
	if (r == 0)
		*ret = w;
	return r;
}

bool hr_who_group(const char *name)
{
	char *buf = malloc(DATABASE_BYTES);
	gid_t group;
	bool found = buf && find_group(name, &group, buf);

	free(buf);
	return found;
}

bool hr_who_is_node(const struct hr_who *w, const char *node)
{
	size_t label = strcspn(w->node, ".");

	return strcmp(w->node, node) == 0 ||
	       (strlen(node) == label && strncmp(w->node, node, label) == 0);
}

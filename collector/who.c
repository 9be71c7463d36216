/* SPDX-License-Identifier: Apache-2.0 */
#include "collector/who.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/text.h"
#include "common/users.h"
#include "net/munge.h"

#define OU_NODE "headrace-node"
#define OU_USER "headrace-user"
/* organizational unit in certificates of shared machines, where MUNGE identifies the user */
#define OU_CLIENT "headrace-client"

static void be_user(const struct hr_who_rules *rules, uid_t uid, struct hr_who *w)
{
	struct hr_user user;

	w->user = true;
	w->uid = uid;
	w->any_node = uid == 0 || uid == geteuid();
	w->operator_ = w->any_node || hr_user_is_operator(uid, rules->operators);
	if (hr_user_by_id(uid, &user))
		snprintf(w->text, sizeof(w->text), "%s %.255s (%u)",
			 w->operator_ ? "operator" : "user", user.name, uid);
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
		(void)hr_text_fail(-EACCES, ret_error, "the MUNGE credential is not valid: %s",
				   error ? error : strerrordesc_np(-r));
	else
		*ret = uid;
	free(error);
	return r < 0 ? -EACCES : 0;
}

static int by_certificate(const struct hr_conn_peer *peer, uid_t *ret, char **ret_error)
{
	struct hr_user user;

	if (strcmp(peer->ou, OU_CLIENT) == 0)
		return hr_text_fail(-EACCES, ret_error,
				    "the certificate of \"%s\" (" OU_CLIENT
				    ") does not identify a user: use MUNGE, too (munge = yes at "
				    "the collector, libmunge and munged on this machine)",
				    peer->cn);
	if (strcmp(peer->ou, OU_USER) != 0 || peer->cn[0] == '\0')
		return hr_text_fail(-EACCES, ret_error,
				    "the certificate of CN \"%s\" has OU \"%s\"; " OU_NODE
				    " may stream and " OU_USER
				    " may query (scripts/make-ca creates them)",
				    peer->cn, peer->ou);
	if (!hr_user_by_name(peer->cn, &user))
		return hr_text_fail(
		    -EACCES, ret_error,
		    "the certificate is of user \"%s\", who does not exist at the collector",
		    peer->cn);
	*ret = user.uid;
	return 0;
}

/* Identifies the peer of plain TCP or a local socket. Returns 1: unknown, but accepted. */
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
		return hr_text_fail(-EACCES, ret_error,
				    "the collector cannot find out which user connects (another "
				    "network namespace?): use TLS, or set plain = yes in the "
				    "configuration of the collector");
	return hr_text_fail(
	    -EACCES, ret_error,
	    "plain TCP from another machine is refused, even with MUNGE: use a certificate "
	    "(--tls-cert, --tls-key, --tls-ca; for run and query HEADRACE_TLS_CERT, _KEY, _CA), or "
	    "set plain = yes in the configuration of the collector");
}

static int who_decide(const struct hr_who_rules *rules, const struct hr_conn_peer *peer,
		      const char *credential, struct hr_who *w, char **ret_error)
{
	bool credible = rules->munge && credential && *credential;
	uid_t uid = 0;
	int r;

	if (peer->tls && strcmp(peer->ou, OU_NODE) == 0 && peer->cn[0] != '\0') {
		r = credible ? by_credential(rules, credential, &uid, ret_error) : 0;
		if (r == 0 && uid != 0)
			be_user(rules, uid, w);
		else if (r == 0) /* root has the rights of the node */
			be_node(peer, w);
		return r;
	}
	if (!peer->tls) {
		r = by_kernel(rules, peer, &uid, ret_error);
		if (r < 0)
			return r;
	} else {
		r = credible ? 0 : by_certificate(peer, &uid, ret_error);
	}
	if (credible)
		r = by_credential(rules, credential, &uid, ret_error);
	if (r < 0)
		return r;
	if (r == 0) {
		be_user(rules, uid, w);
	} else {
		w->anonymous = true;
		snprintf(w->text, sizeof(w->text), "an unknown peer");
	}
	return 0;
}

int hr_who_decide(const struct hr_who_rules *rules, const struct hr_conn_peer *peer,
		  const char *credential, struct hr_who *ret, char **ret_error)
{
	struct hr_who w = {0};
	int r;

	*ret_error = NULL;
	r = who_decide(rules, peer, credential, &w, ret_error);
	if (r == 0)
		*ret = w;
	return r;
}

bool hr_who_is_node(const struct hr_who *w, const char *node)
{
	size_t label = strcspn(w->node, ".");

	return strcmp(w->node, node) == 0 ||
	       (strlen(node) == label && strncmp(w->node, node, label) == 0);
}

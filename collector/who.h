/* SPDX-License-Identifier: Apache-2.0 */
/*
 * who.h - identifies the peer of a connection, and decides what the peer may do
 *
 * Purpose   Decides once per connection, after Hello. It uses certificates, the kernel and MUNGE,
 *           never what the peer claims.
 * Threads   Any. hr_who_decide waits some milliseconds for munged and the user database.
 *
 *      what is known                                    who
 *      certificate with OU headrace-node                the node CN: streams of node CN, any job and user
 *      certificate with OU headrace-user                the user CN, by the collector's user database
 *      certificate with OU headrace-client              anonymous, if there is no MUNGE credential
 *      a good MUNGE credential                          its user, with any of these certificates or if plain is
 *                                                       accepted; root with a node's certificate is the node
 *      plain, from this machine                         the user of the socket, from the kernel
 *      plain, from elsewhere (only with plain = yes)    anonymous: streams only
 *
 *      root and the collector's user have the rights of nodes and operators; members of group
 *      `operators` are operators
 */
#ifndef HEADRACE_COLLECTOR_WHO_H
#define HEADRACE_COLLECTOR_WHO_H

#include <stdbool.h>
#include <stdint.h>

#include "net/conn.h"

struct hr_who {
	bool any_node; /* may open all streams */
	bool one_node; /* may open streams of the node `node`, of all users */
	/* `uid` is known; may open streams of this user, and query jobs of this user */
	bool user;
	bool operator_; /* may query all jobs */
	bool anonymous; /* may open all streams, but not query */
	uint32_t uid;
	char node[256];
	char text[320]; /* "node n1", "user alice (1000)", "operator bob (1001)" */
};

struct hr_who_rules {
	const char *operators;	  /* group of operators; NULL: none */
	bool munge;		  /* MUNGE credentials are accepted */
	const char *munge_socket; /* NULL: the default socket */
	bool plain_anywhere;	  /* plain connections from other machines are accepted */
};

/* What a client reads that may not query. */
#define HR_WHO_UNKNOWN                                                                             \
	"the collector cannot identify you: use a certificate of a user, a MUNGE credential, or "  \
	"connect from its machine"

/* Returns 0, or -EACCES if the peer has no rights here; *ret_error (malloc'ed) contains advice. */
int hr_who_decide(const struct hr_who_rules *rules, const struct hr_conn_peer *peer,
		  const char *credential, struct hr_who *ret, char **ret_error);

/* Whether the peer may stream only jobs of its own user. */
static inline bool hr_who_own_jobs(const struct hr_who *w)
{
	return w->user && !w->any_node && !w->one_node;
}

/*
 * Returns whether `node` is the CN of the certificate of a peer with `one_node`, or the first label
 * of this CN.
 */
bool hr_who_is_node(const struct hr_who *w, const char *node);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * query_identity.h - how a user proves their identity to a collector
 *
 *      TLS      with a certificate of the user, if net/tls_find.h finds one; headrace then also
 *               checks the certificate of the collector
 *      MUNGE    with a credential, if the HelloAck or refusal shows that the collector accepts it
 *      neither  a plain connection: on one machine the kernel identifies the peer
 */
#ifndef HEADRACE_CLI_QUERY_QUERY_IDENTITY_H
#define HEADRACE_CLI_QUERY_QUERY_IDENTITY_H

#include <stdbool.h>

#include "net/address.h"
#include "net/tls.h"

struct hr_query_identity {
	struct hr_tls *tls; /* NULL: a plain connection */
	char *munge;	    /* NULL: no credential has been made */
};

/* On failure, *ret_error (malloc'ed) explains what is wrong with the certificates. */
int hr_identity_init(struct hr_query_identity *i, const struct hr_address *to, char **ret_error);

bool hr_identity_credential(struct hr_query_identity *i);
void hr_identity_done(struct hr_query_identity *i);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tls_find.h - finds the certificate that this program uses with a collector
 *
 * `headrace query`, `run`, `doctor` and `headraced uplink` use this rule (docs/tls.md). The first
 * of these places that names one of the three files must name all three:
 *
 *      --tls-cert, --tls-key, --tls-ca                          for commands with these flags
 *      HEADRACE_TLS_CERT, HEADRACE_TLS_KEY, HEADRACE_TLS_CA     HEADRACE_TLS_CERT empty: plain TCP
 *      $XDG_CONFIG_HOME/headrace/tls, ~/.config/headrace/tls    cert.pem, key.pem, ca.pem
 *
 * Owner     The caller owns the paths; hr_tls_paths_done frees them.
 * Threads   Any, if no thread changes the environment.
 */
#ifndef HEADRACE_NET_TLS_FIND_H
#define HEADRACE_NET_TLS_FIND_H

#include "net/tls.h"

struct hr_tls_paths {
	char *cert, *key, *ca; /* absolute, because daemons change their folder; all NULL: no TLS */
};

/*
 * `flags`: the files of the command line; all NULL if the command has no such flags. Checks only
 * that the files exist, because hr_tls_new reads them. -EINVAL: not all three are named. -ENOENT
 * and others: a file is missing. *ret_error (malloc'ed) explains the error.
 */
int hr_tls_find(const struct hr_tls_files *flags, struct hr_tls_paths *ret, char **ret_error);
void hr_tls_paths_done(struct hr_tls_paths *p);

/* Returns the files for hr_tls_new. They are valid as long as `p`. */
struct hr_tls_files hr_tls_paths_files(const struct hr_tls_paths *p);

#endif

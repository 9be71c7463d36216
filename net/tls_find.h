/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tls_find.h - which certificate this program shows to a collector
 *
 * Purpose   One rule for `headrace query`, `run`, `doctor` and `headraced uplink` (docs/tls.md). Of these places the first that names
 *           any of the three files must name them all:
 *
 *      --tls-cert, --tls-key, --tls-ca                          where a command has them
 *      HEADRACE_TLS_CERT, HEADRACE_TLS_KEY, HEADRACE_TLS_CA     an empty HEADRACE_TLS_CERT: plain TCP, whatever the next one has
 *      $XDG_CONFIG_HOME/headrace/tls, ~/.config/headrace/tls    cert.pem, key.pem, ca.pem
 *
 * Owner     The caller, of the paths; hr_tls_paths_done frees them.
 * Threads   Any, while nobody changes the environment.
 */
#ifndef HEADRACE_NET_TLS_FIND_H
#define HEADRACE_NET_TLS_FIND_H

#include "net/tls.h"

struct hr_tls_paths {
	char *cert, *key, *ca; /* absolute: daemons work in another folder. All NULL: plain TCP */
};

/*
 * `flags`: what the command line names, all NULL where it has no such flags. Only looks whether the files are there; hr_tls_new
 * reads them. -EINVAL: some of three; -ENOENT and the like: one is not there; *ret_error, malloc'ed, says which.
 */
int hr_tls_find(const struct hr_tls_files *flags, struct hr_tls_paths *ret, char **ret_error);
void hr_tls_paths_done(struct hr_tls_paths *p);

/* The same files, for hr_tls_new; they live as long as `p`. */
struct hr_tls_files hr_tls_paths_files(const struct hr_tls_paths *p);

#endif

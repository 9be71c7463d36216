/* SPDX-License-Identifier: Apache-2.0 */
/*
 * munge.h - MUNGE credentials: which user of this cluster is asking
 *
 * Purpose   libmunge.so.2 is loaded at run time, so that only sites that use it need it.
 * Threads   Any; both functions wait for munged (milliseconds).
 */
#ifndef HEADRACE_NET_MUNGE_H
#define HEADRACE_NET_MUNGE_H

#include <stdint.h>

/*
 * A credential of the calling user, for headrace and nothing else. *ret is malloc'ed. -ENOENT: no libmunge, -ECONNREFUSED: no munged;
 * *ret_error is malloc'ed.
 */
int hr_munge_encode(const char *socket, char **ret, char **ret_error);

/* Whose it is. `socket` NULL: munged's usual one. -EACCES not valid here (expired, seen before, of another key or service). */
int hr_munge_decode(const char *socket, const char *credential, uint32_t *ret_uid,
		    uint32_t *ret_gid, char **ret_error);

#endif

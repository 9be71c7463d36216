/* SPDX-License-Identifier: Apache-2.0 */
/*
 * munge.h - MUNGE credentials, which identify a user of this cluster
 *
 * Purpose   libmunge.so.2 is loaded at run time, so that only sites that use it need it.
 * Threads   Any; both functions wait for munged (milliseconds).
 */
#ifndef HEADRACE_NET_MUNGE_H
#define HEADRACE_NET_MUNGE_H

#include <stdint.h>

/*
 * Makes a credential of the calling user that is valid for headrace only. *ret is malloc'ed.
 * -ENOENT: no libmunge, -ECONNREFUSED: no munged; *ret_error is malloc'ed.
 */
int hr_munge_encode(const char *socket, char **ret, char **ret_error);

/* `socket` NULL: munged's default. -EACCES: invalid (expired, replayed, another key or service). */
int hr_munge_decode(const char *socket, const char *credential, uint32_t *ret_uid,
		    uint32_t *ret_gid, char **ret_error);

#endif

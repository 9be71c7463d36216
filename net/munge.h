/* SPDX-License-Identifier: Apache-2.0 */
/*
 * munge.h - MUNGE credentials, which identify a user of this cluster
 *
 * libmunge.so.2 is loaded at run time, so that only sites that use MUNGE need it.
 *
 */
#ifndef HEADRACE_NET_MUNGE_H
#define HEADRACE_NET_MUNGE_H

#include <stdint.h>

/*
 * Makes a credential of the calling user, which is valid only for headrace. *ret and *ret_error are
 * malloc'ed. -ENOENT: libmunge is missing. -ECONNREFUSED: munged does not run.
 */
int hr_munge_encode(const char *socket, char **ret, char **ret_error);

/*
 * Finds the user of a credential. If `socket` is NULL, uses munged's default. -EACCES: the
 * credential is invalid (expired, used before, or of another key or service).
 */
int hr_munge_decode(const char *socket, const char *credential, uint32_t *ret_uid,
		    uint32_t *ret_gid, char **ret_error);

#endif

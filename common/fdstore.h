/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fdstore.h - descriptors that outlive a crash of the daemon
 *
 * The protocol is that of systemd (sd_notify FDSTORE=1, FDNAME=...; LISTEN_FDS, LISTEN_FDNAMES,
 * LISTEN_PID). systemd or, for a private headraced, the keeper (keeper.h) keeps the descriptors. A
 * recording process of the node service pushes to the service and, through HEADRACE_FDSTORE, to
 * systemd, because both processes may be killed at once. In systemd, names start with
 * HEADRACE_FDSTORE_PREFIX. Any thread. Without NOTIFY_SOCKET, pushes succeed and do nothing.
 */
#ifndef HEADRACE_COMMON_FDSTORE_H
#define HEADRACE_COMMON_FDSTORE_H

#include <stddef.h>

/* Sends a descriptor with a unique `name` ([A-Za-z0-9._-], at most 200 bytes). 0 or -errno. */
int hr_fdstore_push(const char *name, int fd);
int hr_fdstore_remove(const char *name);
int hr_fdstore_notify(const char *text); /* "READY=1", "STATUS=..." */

/* A descriptor that this process inherited. */
struct hr_inherited {
	char *name;
	int fd; /* the caller stores -1 if it keeps the descriptor */
};
int hr_fdstore_inherit(struct hr_inherited **ret, size_t *ret_n);
void hr_fdstore_inherited_free(struct hr_inherited *list, size_t n); /* closes the rest */

#endif

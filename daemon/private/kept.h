/* SPDX-License-Identifier: Apache-2.0 */
/*
 * kept.h - retained descriptors, which a parent passes to the next recording process
 *
 * Purpose   The receiving side of fdstore.h, for the keeper and the node service.
 *
 *      parent                                   child
 *      hr_notify_open: a datagram socket
 *      fork, hr_kept_exec ------------------->  NOTIFY_SOCKET, LISTEN_FDS, LISTEN_FDNAMES, sockets
 *      hr_notify_read  <----------------------  FDSTORE=1 FDNAME=... (with a descriptor),
 *                                               FDSTOREREMOVE=1 FDNAME=..., READY=1
 *      hr_kept_take: adds to, or removes from, the child's list
 *
 * Owner     The caller's structures; a list owns its descriptors.
 * Threads   One. hr_kept_exec runs in the child, between fork and exec.
 */
#ifndef HEADRACE_DAEMON_PRIVATE_KEPT_H
#define HEADRACE_DAEMON_PRIVATE_KEPT_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>
#include <sys/un.h>

#define HR_KEPT_MOST	131072u
#define HR_KEPT_SOCKETS 4u
#define HR_KEPT_FAILED	70 /* exit status of a child that could not exec */

struct hr_kept_fd {
	char *name;
	int fd;
};

struct hr_kept {
	struct hr_kept_fd *list;
	size_t n, room;
};

/*
 * Keeps fd, and closes the earlier descriptor with this name, if any. Without memory or room,
 * closes fd.
 */
void hr_kept_add(struct hr_kept *k, const char *name, int fd);
int hr_kept_find(const struct hr_kept *k, const char *name); /* -1: no such descriptor */
void hr_kept_done(struct hr_kept *k);

/* ---- notifications --------------------------------------------------------------------------- */

struct hr_notify {
	int fd;							/* non-blocking */
	char name[sizeof(((struct sockaddr_un *)0)->sun_path)]; /* address, for NOTIFY_SOCKET */
};

struct hr_notice {
	pid_t from; /* the pid of the sender, as the kernel reports it */
	int fd;	    /* the caller owns it; -1: the notice has no descriptor */
	char text[4096];
};

/* Opens an abstract socket. Returns 0 or -errno. Call hr_notify_close even after a failure. */
int hr_notify_open(struct hr_notify *n);
void hr_notify_close(struct hr_notify *n);

/* Reads one notice, without waiting. Returns 0 or -errno; -EAGAIN: there is none. */
int hr_notify_read(struct hr_notify *n, struct hr_notice *ret);

/* Returns whether the notice has the line `key=value`. */
bool hr_notice_has(const struct hr_notice *notice, const char *key, const char *value);

/*
 * Applies a notice: FDSTORE adds its descriptor, FDSTOREREMOVE removes a descriptor. Closes the
 * descriptor of any other notice.
 */
void hr_kept_take(struct hr_kept *k, struct hr_notice *notice);

/* ---- the child ------------------------------------------------------------------------------- */

/*
 * Executes `exe`. The retained descriptors get the numbers 3, 4..., and `sockets` the numbers after
 * these. Appends the number of the first socket to the arguments. After a failure, exits with
 * HR_KEPT_FAILED.
 */
_Noreturn void hr_kept_exec(struct hr_kept *k, const struct hr_notify *notify, const char *exe,
			    char *const *argv, const int *sockets, size_t n_sockets);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * kept.h - descriptors that are kept for a child, and handed to the next one when it was killed
 *
 * Purpose   The receiving side of fdstore.h, for who starts workers: the keeper of a private daemon, and the node service.
 *
 *      parent                                   child
 *      hr_notify_open: a datagram socket
 *      fork, hr_kept_exec ------------------->  NOTIFY_SOCKET, LISTEN_FDS, LISTEN_FDNAMES; sockets behind these
 *      hr_notify_read  <----------------------  FDSTORE=1 FDNAME=... (with a descriptor), FDSTOREREMOVE=1, READY=1
 *      hr_kept_take: into the list of that child
 *
 * Owner     The caller's structures; a list owns its descriptors.
 * Threads   One. hr_kept_exec runs in the child, between fork and exec of a process without other threads.
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

/* Takes fd, in the place of one with that name; closes it where there is no memory, or no room. */
void hr_kept_add(struct hr_kept *k, const char *name, int fd);
void hr_kept_remove(struct hr_kept *k, const char *name);
int hr_kept_find(const struct hr_kept *k, const char *name); /* its descriptor; -1: none */
void hr_kept_done(struct hr_kept *k);			     /* closes them */

/* ---- notifications --------------------------------------------------------------------------- */

struct hr_notify {
	int fd;							/* not blocking */
	char name[sizeof(((struct sockaddr_un *)0)->sun_path)]; /* for NOTIFY_SOCKET */
};

struct hr_notice {
	pid_t from; /* as the kernel says */
	int fd;	    /* the caller's; -1: none */
	char text[4096];
};

/* Makes an abstract socket with a name of the kernel's choice. 0 or -errno; hr_notify_close in either case. */
int hr_notify_open(struct hr_notify *n);
void hr_notify_close(struct hr_notify *n);

/* One notice, without waiting. False when there is none. */
bool hr_notify_read(struct hr_notify *n, struct hr_notice *ret);

/* The value of `key` in its lines, as a new string; NULL when absent. */
char *hr_notice_value(const struct hr_notice *notice, const char *key);
bool hr_notice_has(const struct hr_notice *notice, const char *key, const char *value);

/*
 * What it says of descriptors: adds, removes, or closes it. The name of the one that was added or removed, as a new string, for
 * who tells others; else NULL. *ret_added says which.
 */
char *hr_kept_take(struct hr_kept *k, struct hr_notice *notice, bool *ret_added);

/* ---- the child ------------------------------------------------------------------------------- */

/*
 * Becomes `exe`: kept descriptors are 3, 4, ..., `sockets` behind them, of which the first's number is appended to the
 * arguments. Exits on failure.
 */
_Noreturn void hr_kept_exec(struct hr_kept *k, const struct hr_notify *notify, const char *exe,
			    char *const *argv, const int *sockets, size_t n_sockets);

#endif

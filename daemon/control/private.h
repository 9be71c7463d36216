/* SPDX-License-Identifier: Apache-2.0 */
/*
 * private.h - the private daemon of one (store, job, node, uid): where it is and what it is told
 *
 * Purpose   `headrace run` starts a headraced of its own, or joins the one that another run of the
 *           same job started on this node. Both sides agree here on names and configuration.
 *
 *      $XDG_RUNTIME_DIR/headrace/, $TMPDIR/headrace-UID/, /tmp/headrace-UID/ or /tmp/headrace-UID.XXXXXX/: the first that is ours,
 *      mode 0700 (HEADRACE_RUNTIME: that one alone)
 *          <key>.lock      held (flock) by who starts or joins a daemon, and by one about to end
 *          <key>.control   control socket, daemon/control/control.h
 *          <key>.shim      shim socket, proto/abi.h
 *
 *      key = 16 hex digits: hash of the store's (or spool's) folder's device and inode, and the job
 *
 *      run A                    run B                    daemon
 *      lock, connect: nobody
 *      starts the daemon        lock: waits              listens, ready
 *      join, ready; unlock      connect, join, ready
 *                               unlock
 *      leave                    leave                    lock; removes all three; ends the job
 *
 * Owner     The caller owns the structures. The lock file belongs to who holds its lock.
 * Threads   Plain functions over the caller's memory.
 */
#ifndef HEADRACE_DAEMON_CONTROL_PRIVATE_H
#define HEADRACE_DAEMON_CONTROL_PRIVATE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/un.h>

#include "daemon/control/control.h"
#include "daemon/control/node_config.h"

#define HR_PRIVATE_PATH sizeof(((struct sockaddr_un *)0)->sun_path)

struct hr_private_names {
	char control[HR_PRIVATE_PATH];
	char shim[HR_PRIVATE_PATH];
	char lock[HR_PRIVATE_PATH];
};

/*
 * The names for a store that exists; makes the runtime folder. Errors: -EPERM (the folder is not
 * ours or open to others), -ENAMETOOLONG, and those of stat and mkdir; *ret_error (malloc'ed) says
 * which folder and what to do.
 */
int hr_private_names(const char *store, const char *job, struct hr_private_names *ret,
		     char **ret_error);

/* The control sockets that daemons of this user listen at, or have listened at: a folder may be there twice. */
void hr_private_each(void (*found)(void *arg, const char *control), void *arg);

/* Waits for the lock. The descriptor closes on exec; closing it gives the lock back. */
int hr_private_lock(const struct hr_private_names *names, int *ret_fd);

/* The same without waiting: -EWOULDBLOCK when somebody is joining. */
int hr_private_trylock(const struct hr_private_names *names, int *ret_fd);

/* Removes sockets and lock file; the caller holds the lock, or is the daemon that fails. */
void hr_private_remove(const struct hr_private_names *names);

/* Removes what a daemon left behind that was killed; nothing when another one listens by now. */
void hr_private_sweep(const struct hr_private_names *names);

/* ---- configuration of a daemon: a JobConfig (proto/control.proto) on its standard input --------- */

#define HR_PRIVATE_LABELS 64u

struct hr_private_config {
	struct hr_node_config node; /* its pointers are into the fields below, or the caller's */
	struct hr_private_names names;
	/* "tcp://A,tcp://B": node.store is a spool, and this is where it goes; NULL: it is not */
	const char *collectors;
	const char *tls_cert, *tls_key, *tls_ca; /* NULL: plain TCP */
	bool tls_later;				 /* uplink.h; not packed */
	uint64_t spool_bytes;			 /* its limit */
	uint64_t drain_ms; /* how long the daemon goes on sending after the job's end, at most */
	/* of a job of the node service (service/service.h) */
	const char *scheduler;	      /* the job's id in the environment of its processes */
	const char *end_state;	      /* it is to end so; NULL: not yet */
	const char *cgroup;	      /* whose processes are its own, for probes; NULL: none */
	bool registered;	      /* a prolog has announced it */
	bool killed;		      /* a signal ended its script */
	unsigned policy;	      /* enum hr_policy of service/policy.h */
	const char *privacy_key;      /* file of node.privacy's key */
	Headrace__JobConfig *message; /* of hr_private_config_read: owns the strings */
	const char *labels[HR_PRIVATE_LABELS + 1];
};

/* Writes it to an empty file. -EMSGSIZE when labels and paths are too long together, -EIO when the file took a part. */
int hr_private_config_write(const struct hr_private_config *config, int fd);

/* All labels ("k=v", NULL-terminated) as one number, for a run that joins to compare its own. */
uint64_t hr_private_labels_id(const char *const *labels);

/* Reads it from a file from its start, so that each restart of a worker finds it. -EBADMSG. */
int hr_private_config_read(int fd, struct hr_private_config *ret);
void hr_private_config_done(struct hr_private_config *config);

/* ---- file systems ---------------------------------------------------------------------------- */

struct hr_fs_kind {
	const char *name; /* "ext4", "nfs", "lustre"...; "unknown" */
	bool network;	  /* mapped files there are slow, or unsafe, under a crash */
};

/* Of the file system that holds `path`. */
int hr_fs_kind(const char *path, struct hr_fs_kind *ret);

/* Where the journal of a store lies: NULL (beside the stream) or a local folder when the store is
 * on a network. */
const char *hr_private_journal_dir(const char *store);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * private.h - sockets, lock and configuration of a private headraced
 *
 * `headrace run` starts a private headraced, or joins the one of another run of the same job on
 * this node. Both programs use these names and this configuration.
 *      Runtime folder: the first of $XDG_RUNTIME_DIR/headrace/, $TMPDIR/headrace-UID/,
 *      /tmp/headrace-UID/ and /tmp/headrace-UID.XXXXXX/ that this user owns with mode 0700.
 *      HEADRACE_RUNTIME replaces the list.
 *          <key>.lock      flock of a run that starts or joins, or of a headraced that ends the job
 *          <key>.control   control socket, daemon/control/control.h
 *          <key>.shim      shim socket, proto/abi.h
 *
 *      key: 16 hex digits, a hash of the job and of the device and inode of the store or spool
 *
 *      run A                    run B                   headraced
 *      lock; connect: refused
 *      starts headraced         lock: waits             listens, ready
 *      join; ready; unlock      connect; join; ready
 *                               unlock
 *      leave                    leave                   lock; ends the job, removes all three
 *
 * Owner     The caller owns the structures. The process that holds the lock owns the lock file.
 * Threads   Any, over the caller's memory.
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
 * Sets the names for a store that exists, and makes the runtime folder. -EPERM: other users own or
 * may enter the folder; -ENAMETOOLONG; errors of stat and mkdir. *ret_error (malloc'ed) has the
 * folder and advice.
 */
int hr_private_names(const char *store, const char *job, struct hr_private_names *ret,
		     char **ret_error);

/*
 * Makes a link to the folder `target` in the runtime folder, and sets its path, for uses that do
 * not accept every path. The link stays. Errors: those of the runtime folder, symlink and rename.
 */
int hr_private_link(const char *target, char ret[HR_PRIVATE_PATH]);

/*
 * Calls `found` for each control socket of this user, even if its daemon was killed. May report a
 * socket twice.
 */
void hr_private_each(void (*found)(void *arg, const char *control), void *arg);

/* Waits for the lock. To release it, close *ret_fd; an exec closes it, too. */
int hr_private_lock(const struct hr_private_names *names, int *ret_fd);

/* Takes the lock without waiting. -EWOULDBLOCK: another process has the lock. */
int hr_private_trylock(const struct hr_private_names *names, int *ret_fd);

/* Removes the sockets and the lock file. The caller holds the lock, or is a daemon that fails. */
void hr_private_remove(const struct hr_private_names *names);

/* Removes the sockets and the lock file if the daemon was killed and no process holds the lock. */
void hr_private_sweep(const struct hr_private_names *names);

/* ---- configuration: a JobConfig (proto/control.proto) on standard input --------------------- */

#define HR_PRIVATE_LABELS 64u

struct hr_private_config {
	/* The pointers in `node` point to the fields below, or to memory of the caller. */
	struct hr_node_config node;
	struct hr_private_names names;
	/*
	 * The collectors ("tcp://A,tcp://B") for the spool node.store; NULL: node.store is not a
	 * spool.
	 */
	const char *collectors;
	const char *tls_cert, *tls_key, *tls_ca; /* NULL: plain TCP */
	bool tls_later;				 /* see uplink.h; not a field of JobConfig */
	uint64_t spool_bytes;
	/* How long headraced sends frames after the end of the job. */
	uint64_t drain_ms;
	/* Only for jobs of the node service (service/service.h): */
	const char *scheduler; /* the job id in the environment of the job's processes */
	const char *end_state; /* how the job has ended; NULL: it has not */
	const char *cgroup;    /* cgroup with the processes that probes record; NULL: none */
	bool registered;
	bool killed;		      /* a signal ended the script of the job */
	unsigned policy;	      /* enum hr_policy of service/policy.h */
	const char *privacy_key;      /* path of the key file for node.privacy */
	Headrace__JobConfig *message; /* memory of the strings after hr_private_config_read */
	const char *labels[HR_PRIVATE_LABELS + 1];
};

/* Writes `config` to an empty file. -EMSGSIZE: the texts are too long; -EIO: a short write. */
int hr_private_config_write(const struct hr_private_config *config, int fd);

/*
 * Returns a hash of all labels ("k=v", NULL-terminated). A run that joins a job compares it with
 * the hash of its own labels.
 */
uint64_t hr_private_labels_id(const char *const *labels);

/* Reads from the start: restarted processes share the position in the file. -EBADMSG: invalid. */
int hr_private_config_read(int fd, struct hr_private_config *ret);
void hr_private_config_done(struct hr_private_config *config);

/* ---- file systems ---------------------------------------------------------------------------- */

struct hr_fs_kind {
	const char *name; /* "ext4", "nfs", "lustre"...; "unknown" */
	bool network;	  /* true: mapped files are slow, or a crash loses their data */
};

int hr_fs_kind(const char *path, struct hr_fs_kind *ret);

/*
 * Returns the folder for the journal: a local folder if the store is on a network, else NULL (the
 * folder of the stream).
 */
const char *hr_private_journal_dir(const char *store);

#endif

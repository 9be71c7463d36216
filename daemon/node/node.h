/* SPDX-License-Identifier: Apache-2.0 */
/*
 * node.h - the daemon of one node: owns everything, starts and stops it in order
 *
 * Threads   attach   accepts shim connections, hands out prefaulted maps (session.c)
 *           drain    sweeps rings, journals, folds, seals batches (drain.c, engine.c)
 *           caller's the libuv loop: control socket, signals, keeper (main.c); calls the functions below
 * Lifetime  hr_node_new .. hr_node_stop .. hr_node_free. All functions from the loop thread unless noted.
 */
#ifndef HEADRACE_DAEMON_NODE_NODE_H
#define HEADRACE_DAEMON_NODE_NODE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "store/store.h"
#include "daemon/base/privacy.h"

struct hr_spool;

struct hr_node_config {
	const char *store;	 /* private mode: where the stream is written */
	struct hr_spool *spool;	 /* of that folder, when it is a spool; outlives the node */
	const char *shim_socket; /* path to listen on; made 0666 in a folder the caller made */
	int shim_fd;		 /* listens there already and outlives this process; 0: none */
	int door_fd; /* instead: each message brings a connection (SCM_RIGHTS) that somebody else accepted; 0: none */
	const char *
	    journal_dir; /* NULL: the stream's folder; else $TMPDIR or /dev/shm (network file systems) */
	struct hr_stream_id id;
	uint32_t uid; /* of the job's owner; other uids but 0 are refused in private mode */
	const char *job_name, *account, *partition; /* may be NULL: as the environment says */
	const char *const *labels;		    /* "k=v", NULL-terminated; may be NULL */
	int level;				    /* enum hr_level */
	uint64_t max_bytes; /* of the stream; past it only counters are kept; 0: no limit */
	const char *ranks;  /* "0-47,64" or NULL: all; others are deselected */
	const char *local_ranks;
	uint32_t ranks_expected; /* 0: unknown; raised when a process says its world size */
	uint32_t nodes_expected; /* likewise, that the scheduler has given to the job */
	bool
	    probes_later; /* with `probes`: loaded beside the work; hr_node_new does not wait for it */
	bool probes;	  /* programs in the kernel are to tell of what the shim does not see */
	struct hr_privacy_rules privacy; /* of a stream that begins; a journal has its own */
	uint32_t max_sessions;		 /* 0: 65536 */
	uint64_t
	    max_ring_bytes; /* 0: a quarter of the memory that may be locked in memfds (half of RAM) */
	uint64_t
	    journal_half_bytes; /* 0: HR_JOURNAL_HALF_BYTES; tests take less, for more checkpoints */
};

struct hr_node;

/* Opens store and journal, replays a journal that is there, takes inherited sessions from the fd store. */
int hr_node_new(const struct hr_node_config *config, struct hr_node **ret, char **ret_error);
int hr_node_start(struct hr_node *n); /* listens; threads run */

struct hr_node_stats { /* a consistent copy, any thread */
	uint64_t events, bytes_moved, lost, torn, hostile;
	uint64_t read_bytes, written_bytes; /* a copy from file to file is both */
	uint64_t stray, detached;	    /* of `lost`; the rest found a full ring */
	uint64_t records_in, batches, stored_bytes;
	uint32_t sessions, sessions_total;
	uint64_t sweeps;
	int store_error; /* 0, or -errno of the last failed append; appended again when it goes away */
	bool counters_only; /* max_bytes was reached */
	bool
	    journal_in_memory; /* no room for it on disk: a kill of the daemon loses what is not stored */
	uint64_t given_up,
	    given_up_bytes; /* operations that a full store did not take at the end */
	bool untold;	    /* nor had it room for the Loss frame that says so */
	uint64_t refused;   /* processes and threads that got no rings: a limit was reached */
	int input_wait;	    /* 1/1000 of the time of live training loops; -1: there are none */
	uint64_t steps;	    /* of training loops */
	uint64_t kernel_ops, kernel_added, kernel_lost; /* that probes told of (engine.h) */
};
void hr_node_stats(struct hr_node *n, struct hr_node_stats *ret);

/* What processes have now. Any thread. */
struct hr_attach_use;
void hr_node_use(struct hr_node *n, struct hr_attach_use *ret);

/* Processes now attached (host pids), at most max; returns how many there are in all. Any thread. */
size_t hr_node_attached(struct hr_node *n, pid_t *pids, size_t max);

/*
 * Where there are probes, or will be: the process and what descends from it belong to the job; quiet: not itself (probes.h).
 * hr_node_cgroup: so do all processes of a cgroup (cgroup.h), and of those below it. 0 or -errno.
 * hr_node_probes_lack: what they do without on this kernel, or NULL.
 * hr_node_probes_error: why there are none though they were asked for; NULL: there are, or are on their way, or nobody asked.
 */
void hr_node_root(struct hr_node *n, pid_t pid, bool quiet);
int hr_node_cgroup(struct hr_node *n, uint64_t id);
bool hr_node_probes(struct hr_node *n); /* there are */
const char *hr_node_probes_lack(struct hr_node *n);
const char *hr_node_probes_error(const struct hr_node *n);

/* From now on; a level that max_bytes has lowered stays. Any thread. */
void hr_node_set_level(struct hr_node *n, uint32_t level); /* enum hr_level */
uint32_t hr_node_level(struct hr_node *n);

/* So many processes were not let in by who knows of limits that are not this node's: a loss of the job. Any thread. */
void hr_node_refused(struct hr_node *n, uint64_t processes);

/*
 * The job at this moment, as a LiveJob message (proto/live.proto), malloc'ed; with operations that have been in flight for that
 * long. Blocks for about a sweep. -ENOMEM; -ESHUTDOWN: it does not run.
 */
int hr_node_live(struct hr_node *n, uint64_t in_flight_ns, uint8_t **ret, size_t *ret_bytes);

/* Sweeps everything committed before the call, seals and appends. Blocks. 0 or the store's error. */
int hr_node_flush(struct hr_node *n);

/*
 * Lets in who knocked before the call, and flushes: for a process that will exit, so that another goes on with the job. Nobody is
 * let in afterwards.
 */
void hr_node_pause(struct hr_node *n);

/* How a job ended, for its JobEvent and StreamEnd. */
struct hr_job_end {
	const char *state; /* "ended", "failed", "killed" */
	bool cut_short;	   /* its processes may go on: what they do then is not recorded */
};

/*
 * Ends the job: last sweep, records of operations in flight, StreamEnd, segment sealed, journal removed. Processes still
 * attached go on untraced.
 */
int hr_node_stop(struct hr_node *n, const struct hr_job_end *end);
void hr_node_free(struct hr_node *n);

#endif

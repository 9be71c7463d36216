/* SPDX-License-Identifier: Apache-2.0 */
/*
 * node_config.h - configuration of one recording; `headrace run` or the node service fills it for the node (daemon/node)
 */
#ifndef HEADRACE_DAEMON_CONTROL_NODE_CONFIG_H
#define HEADRACE_DAEMON_CONTROL_NODE_CONFIG_H

#include <stdbool.h>
#include <stdint.h>

#include "daemon/base/privacy.h"
#include "store/store.h"

#define HR_SPOOL_LIMIT_BYTES (UINT64_C(4) << 30) /* of a spool, unless a site sets another limit */

struct hr_spool;

struct hr_node_config {
	const char *store;	 /* private mode: where the stream is written */
	struct hr_spool *spool;	 /* of that folder, when it is a spool; outlives the node */
	const char *shim_socket; /* path to listen on; made 0666 in a folder the caller made */
	int shim_fd;		 /* listens there already and outlives this process; 0: none */
	int handoff_fd; /* instead: each message brings a connection (SCM_RIGHTS) that somebody else accepted; 0: none */
	/* NULL: the stream's folder; else $TMPDIR or /dev/shm (network file systems) */
	const char *journal_dir;
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
	/* with `probes`: loaded beside the work; hr_node_new does not wait for it */
	bool probes_later;
	bool probes; /* programs in the kernel are to tell of what the shim does not see */
	struct hr_privacy_rules privacy; /* of a stream that begins; a journal has its own */
	uint32_t max_sessions;		 /* 0: 65536 */
	/* 0: a quarter of the memory that may be locked in memfds (half of RAM) */
	uint64_t max_ring_bytes;
	/* 0: HR_JOURNAL_HALF_BYTES; tests take less, for more checkpoints */
	uint64_t journal_half_bytes;
};

/* How a job ended, for its JobEvent and StreamEnd. */
struct hr_job_end {
	const char *state; /* "ended", "failed", "killed" */
	bool cut_short;	   /* its processes may go on: what they do then is not recorded */
};

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * node_config.h - the configuration of a node (daemon/node), from `headrace run` or the node
 * service
 */
#ifndef HEADRACE_DAEMON_CONTROL_NODE_CONFIG_H
#define HEADRACE_DAEMON_CONTROL_NODE_CONFIG_H

#include <stdbool.h>
#include <stdint.h>

#include "daemon/base/privacy.h"
#include "store/store.h"

#define HR_SPOOL_LIMIT_BYTES (UINT64_C(4) << 30)

struct hr_spool;

struct hr_node_config {
	const char *store;
	/* The spool whose folder is `store`. It outlives the node. NULL: `store` is not a spool. */
	struct hr_spool *spool;
	/* Path of the listening socket shim_fd, which the node removes when it stops. */
	const char *shim_socket;
	int shim_fd; /* the caller's; it may outlive the process */
	/* The hand-off queue of the node service, which replaces shim_fd; 0: none. */
	int handoff_fd;
	/*
	 * A local folder for the journal, if the store is on a network; NULL: the folder of the
	 * stream.
	 */
	const char *journal_dir;
	struct hr_stream_id id;
	/* The owner of the job. In private mode, only the owner and root may attach. */
	uint32_t uid;
	/* NULL: environment variables of the scheduler have the value */
	const char *job_name, *account, *partition;
	const char *const *labels; /* "k=v", NULL-terminated; may be NULL */
	int level;		   /* enum hr_level */
	/* Beyond this size of the stream, headraced records only counters; 0: no limit. */
	uint64_t max_bytes;
	const char *ranks; /* ranks to record: "0-47,64"; NULL: all */
	const char *local_ranks;
	uint32_t ranks_expected; /* 0: unknown; grows if a process reports a larger world size */
	uint32_t nodes_expected; /* nodes that the scheduler assigned to the job; 0: unknown */
	bool probes;		 /* load probes, which record what the shim does not see */
	bool probes_later;	 /* load probes in a thread, so that hr_node_new does not wait */
	struct hr_privacy_rules privacy; /* for new streams; a journal has its own rules */
	uint32_t max_sessions;		 /* 0: the default, 65536 */
	/* 0: the default, an eighth of RAM */
	uint64_t max_ring_bytes;
	/* 0: HR_JOURNAL_HALF_BYTES. Tests use less, to have more checkpoints. */
	uint64_t journal_half_bytes;
};

/* How a job ended, for its JobEvent and StreamEnd. */
struct hr_job_end {
	const char *state; /* "ended", "failed", "killed" */
	bool cut_short;	   /* processes may still run, without a recording */
};

#endif

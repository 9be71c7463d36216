/* SPDX-License-Identifier: Apache-2.0 */
/*
 * node.h - records one job on one node: owns, starts and stops all parts of the data path
 *
 * Threads   attach   accepts shim connections, sends them prefaulted maps (attach.c)
 *           drain    sweeps rings, journals, folds, seals batches (drain.c, engine.c)
 *           appender stores frames (appender.c)
 *           loop     the caller's libuv loop; calls all functions here that are not for any thread
 * Lifetime  hr_node_new .. hr_node_stop .. hr_node_free
 */
#ifndef HEADRACE_DAEMON_NODE_NODE_H
#define HEADRACE_DAEMON_NODE_NODE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "daemon/base/node_stats.h"
#include "daemon/control/node_config.h"

struct hr_node;

/* Has the stream of this node, job, attempt and instance ended? False also if it cannot be read. */
bool hr_node_stream_ended(const char *store, const struct hr_stream_id *id);

/* Opens the store; begins a stream, or continues one with its journal and retained descriptors. */
int hr_node_new(const struct hr_node_config *config, struct hr_node **ret, char **ret_error);
int hr_node_start(struct hr_node *n); /* starts threads and listening */

void hr_node_stats(struct hr_node *n, struct hr_node_stats *ret);

/* How many sessions and how much ring memory processes have now. Any thread. */
struct hr_attach_use;
void hr_node_use(struct hr_node *n, struct hr_attach_use *ret);

/* Stores at most `max` pids of attached processes; returns how many there are. Any thread. */
size_t hr_node_attached(struct hr_node *n, pid_t *pids, size_t max);

/*
 * Probes record the descendants of the process, and the process itself unless `quiet` (probes.h).
 * hr_node_cgroup: they record all processes of a cgroup (cgroup.h) and of the cgroups below it. 0
 * or -errno. hr_node_probes_lack: what the probes do without on this kernel, or NULL.
 * hr_node_probes_error: why the requested probes are not loaded. NULL: they are loaded, are being
 * loaded, or were not requested.
 */
void hr_node_root(struct hr_node *n, pid_t pid, bool quiet);
int hr_node_cgroup(struct hr_node *n, uint64_t id);
bool hr_node_probes(struct hr_node *n); /* are probes loaded? */
const char *hr_node_probes_lack(struct hr_node *n);
const char *hr_node_probes_error(const struct hr_node *n);

/* Sets the level from now on, unless max_bytes has lowered it. Any thread. */
void hr_node_set_level(struct hr_node *n, uint32_t level); /* enum hr_level */
uint32_t hr_node_level(struct hr_node *n);

/* Counts processes that the service refused because of a limit, as a loss. Any thread. */
void hr_node_refused(struct hr_node *n, uint64_t processes);

/*
 * The job at this moment, as a LiveJob message (proto/live.proto), malloc'ed. It lists operations
 * that have been in flight for in_flight_ns or longer. Blocks for about a sweep. -ENOMEM;
 * -ESHUTDOWN: the job has ended.
 */
int hr_node_live(struct hr_node *n, uint64_t in_flight_ns, uint8_t **ret, size_t *ret_bytes);

/* Stores all records that were committed before the call. Blocks. 0 or the store's error. */
int hr_node_flush(struct hr_node *n);

/*
 * Accepts processes that connected before the call, then flushes; accepts none afterwards. For a
 * process that exits so that another one continues the job.
 */
void hr_node_pause(struct hr_node *n);

/*
 * Ends the job: last sweep, records of operations in flight, StreamEnd, segment sealed, journal
 * removed. Processes that are still attached continue unrecorded.
 */
int hr_node_stop(struct hr_node *n, const struct hr_job_end *end);
void hr_node_free(struct hr_node *n);

#endif

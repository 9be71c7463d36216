/* SPDX-License-Identifier: Apache-2.0 */
/*
 * node.h - records one job on one node: owns, starts and stops all parts of the data path
 *
 * Threads   attach   accepts shim connections, sends them prefaulted maps (attach.c)
 *           drain    sweeps rings, journals, folds, seals batches (drain.c, engine.c)
 *           appender stores frames (appender.c)
 *           loop     the caller's libuv loop; calls all functions here that are not "any thread"
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

/*
 * Returns whether the stream has ended, or the last one that was begun because this one could not
 * continue. Returns false if it is unreadable.
 */
bool hr_node_has_ended(const char *store, const struct hr_stream_id *id);

/* Opens the store. Begins a stream, or continues one from its journal and retained descriptors. */
int hr_node_new(const struct hr_node_config *config, struct hr_node **ret, char **ret_error);
int hr_node_start(struct hr_node *n);

void hr_node_stats(struct hr_node *n, struct hr_node_stats *ret);

/* Returns in *ret how many sessions there are, and how much memory their rings use. Any thread. */
struct hr_attach_use;
void hr_node_use(struct hr_node *n, struct hr_attach_use *ret);

/*
 * Stores at most `max` pids of attached processes in `pids`. Returns the number of all attached
 * processes. Any thread.
 */
size_t hr_node_attached(struct hr_node *n, pid_t *pids, size_t max);

/*
 * hr_node_root makes probes record the descendants of a process, and the process itself unless
 * `quiet`. hr_node_cgroup makes them record a cgroup and the cgroups below it. hr_node_probes_lack
 * returns which features probes lack on this kernel, or NULL. hr_node_probes_error returns why
 * requested probes could not be loaded, or NULL.
 */
void hr_node_root(struct hr_node *n, pid_t pid, bool quiet);
int hr_node_cgroup(struct hr_node *n, uint64_t id);
bool hr_node_probes(struct hr_node *n);
const char *hr_node_probes_lack(struct hr_node *n);
const char *hr_node_probes_error(const struct hr_node *n);

/* Sets the level, unless max_bytes has lowered it. Any thread. */
void hr_node_set_level(struct hr_node *n, uint32_t level); /* enum hr_level */
uint32_t hr_node_level(struct hr_node *n);

/* Counts processes that a limit of the node service refused. They are a loss. Any thread. */
void hr_node_refused(struct hr_node *n, uint64_t processes);

/*
 * Makes a picture of the job (hr_live_free), with the operations that have been in flight for at
 * least in_flight_ns. Blocks for about a sweep. -ENOMEM; -ESHUTDOWN: the job has ended.
 * hr_node_live packs the picture as a LiveJob message (proto/live.proto; malloc'ed).
 */
struct hr_live_picture;
int hr_node_picture(struct hr_node *n, uint64_t in_flight_ns, struct hr_live_picture **ret);
int hr_node_live(struct hr_node *n, uint64_t in_flight_ns, uint8_t **ret, size_t *ret_bytes);

/* Waits until all records committed before the call are stored. Returns 0 or the store's error. */
int hr_node_flush(struct hr_node *n);

/*
 * Accepts the connections that wait, but no later ones, and flushes. Then another process can
 * continue the job.
 */
void hr_node_pause(struct hr_node *n);

/*
 * Ends the job: makes the last sweep, records operations in flight, ends the stream, seals the
 * segment, and removes the journal. Processes that are still attached continue without a recording.
 */
int hr_node_stop(struct hr_node *n, const struct hr_job_end *end);
void hr_node_free(struct hr_node *n);

#endif

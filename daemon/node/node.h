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

#include "daemon/base/node_stats.h"
#include "daemon/control/node_config.h"

struct hr_node;

/* Opens store and journal, replays a journal that is there, takes inherited sessions from the fd store. */
int hr_node_new(const struct hr_node_config *config, struct hr_node **ret, char **ret_error);
int hr_node_start(struct hr_node *n); /* listens; threads run */

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
 * Accepts what connected before the call, and flushes: for a process that will exit so that another one continues the job. It
 * accepts nothing afterwards.
 */
void hr_node_pause(struct hr_node *n);

/*
 * Ends the job: last sweep, records of operations in flight, StreamEnd, segment sealed, journal removed. Processes still
 * attached go on untraced.
 */
int hr_node_stop(struct hr_node *n, const struct hr_job_end *end);
void hr_node_free(struct hr_node *n);

#endif

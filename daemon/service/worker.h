/* SPDX-License-Identifier: Apache-2.0 */
/*
 * worker.h - the process that records one job of the node service
 *
 * Purpose   Runs hr_node (node.h) and the job's uplink, as the service directs with messages (proto/control.proto).
 * Threads   The loop's; hr_node and the uplink have their own.
 */
#ifndef HEADRACE_DAEMON_SERVICE_WORKER_H
#define HEADRACE_DAEMON_SERVICE_WORKER_H

#define HR_WORKER_PAUSED    75
#define HR_WORKER_WHY_BYTES 512u /* of the text of `failed` that the service keeps */

/* Serves until the job is over; connections come through handoff_fd. Returns the exit status; failures go to standard error. */
int hr_service_worker(int config_fd, int channel_fd, int handoff_fd);

#endif

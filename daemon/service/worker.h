/* SPDX-License-Identifier: Apache-2.0 */
/*
 * worker.h - the recording process of one job of the node service
 *
 * Runs hr_node (node.h) and the job's uplink. The service controls it (proto/control.proto). All
 * code runs in the loop thread, but hr_node and the uplink have their own threads.
 */
#ifndef HEADRACE_DAEMON_SERVICE_WORKER_H
#define HEADRACE_DAEMON_SERVICE_WORKER_H

#define HR_WORKER_PAUSED    75	 /* exit status: the next recording process must continue the job */
#define HR_WORKER_WHY_BYTES 512u /* maximum bytes of the text of the message `failed` */

/* Records until the job ends, and returns the exit status. handoff_fd: its hand-off queue. */
int hr_service_worker(int config_fd, int channel_fd, int handoff_fd);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * worker.h - the process that records one job of the node service
 *
 * Purpose   Runs hr_node (node.h) and the job's uplink, and does what the service says on the channel. Messages are control.h's.
 *
 *      service                         worker
 *      -------                         ------
 *                               <----  failed  text: it cannot record the job, and exits
 *                               <----  stats   events bytes_moved lost ... each second in which they changed
 *      level  level             ---->
 *      cgroup path              ---->  who is there is the job's, for probes: again when another worker begins
 *      live   in_flight_ns, a client's connection -->  answers there: live_link.h
 *      end    state linger_ms drain_ms -->  waits for processes at most linger_ms, ends the stream
 *                               <----  ended   events ... attached, as stats
 *                               <----  sending frames left connected error
 *                               <----  sent    the same: all, or what there was time for; then it exits with 0
 *      pause                    ---->  flushes and exits with HR_WORKER_PAUSED: the job goes on under the next service
 *      (end of the channel)     ---->  exits at once, as if killed
 *
 * Threads   The loop's; hr_node and the uplink have their own.
 */
#ifndef HEADRACE_DAEMON_SERVICE_WORKER_H
#define HEADRACE_DAEMON_SERVICE_WORKER_H

#define HR_WORKER_PAUSED    75
#define HR_WORKER_WHY_BYTES 512u /* of what `failed` says */

/* Serves until the job is over; connections come through handoff_fd. Returns the exit status; failures go to standard error. */
int hr_service_worker(int config_fd, int channel_fd, int handoff_fd);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * private_worker.h - the recording process of a private headraced
 *
 * Purpose   Runs hr_node (node.h), answers `headrace run` (control.h), and ends the job.
 *
 *      a run   joined --leave--> leaving --(conditions below)--> answered with `left`, forgotten
 *                +--connection ends without leave--> vanished, until its CMD has ended
 *
 *      leaving, with other runs            answered at once, after a flush
 *      leaving, rank 0, with other runs    answered when it is the last, or after its linger time
 *      leaving, the last one               waits, at most its linger time, for attached processes,
 *                                          those that could still attach (stragglers.h), and CMDs
 *                                          of vanished runs; then the job ends
 *      only vanished runs                  the job ends when their CMDs and all processes end
 *      no run has joined (again)           the job ends after HR_WORKER_GRACE_MS, unless a run that
 *                                          is joining has the lock
 *
 *      One run of this node prints the summary (`print`): rank 0 or, if no run here has a rank, the
 *      last one that leaves. If rank 0 is on another node, no run here prints it.
 *
 *      The job's state is "killed" if a run vanished, SIGKILL ended a CMD, or headraced received
 *      SIGTERM; else "failed" if another signal ended a CMD, or its status was not 0; else "ended".
 *
 * Threads   The loop thread; hr_node has its own.
 */
#ifndef HEADRACE_DAEMON_PRIVATE_PRIVATE_WORKER_H
#define HEADRACE_DAEMON_PRIVATE_PRIVATE_WORKER_H

#define HR_WORKER_GRACE_MS 5000u

/*
 * Records until the job is over, and returns the exit status. Prints failures. Both sockets must
 * already listen.
 */
int hr_private_worker(int config_fd, int control_fd, int shim_fd);

#endif

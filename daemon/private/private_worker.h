/* SPDX-License-Identifier: Apache-2.0 */
/*
 * private_worker.h - the private daemon itself: a node, the runs that joined it, and when it ends
 *
 * Purpose   Runs hr_node (node.h) for one job, answers control.h, and decides when the job is over.
 *
 *      a run   joined --leave--> leaving --(conditions below)--> answered with `done`, forgotten
 *                +--connection ends without leave--> vanished, until its CMD has ended
 *
 *      leaving, others still there       answered at once, after a flush
 *      leaving, rank 0, others there     answered when it is the last, or its linger is over
 *      leaving, the last one             waits for attached processes, for those that could still
 *                                        attach (stragglers.h) and for the CMDs of vanished runs,
 *                                        at most its linger; then the job ends
 *      no run but vanished ones          the job ends when their CMDs and all attached ones have
 *      nobody ever joined, or rejoined   the job ends after HR_WORKER_GRACE_MS
 *
 *      `print=1` (print the summary) goes to one run of this daemon: rank 0, else the last to leave
 *      when no run here knew a rank. Where rank 0 is on another node, nobody prints here.
 *
 *      The job's state is "killed" when a run vanished, when a CMD was ended by SIGKILL, or when
 *      the daemon itself was told to go by SIGTERM; else "failed" when a CMD was ended by another
 *      signal or with another status than 0; else "ended".
 *
 * Threads   The loop's; hr_node has its own.
 */
#ifndef HEADRACE_DAEMON_PRIVATE_PRIVATE_WORKER_H
#define HEADRACE_DAEMON_PRIVATE_PRIVATE_WORKER_H

#define HR_WORKER_GRACE_MS 5000u

/*
 * Serves until the job is over; control_fd and shim_fd listen. Returns the exit status; failures
 * go to standard error.
 */
int hr_private_worker(int config_fd, int control_fd, int shim_fd);

#endif

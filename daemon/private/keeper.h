/* SPDX-License-Identifier: Apache-2.0 */
/*
 * keeper.h - the small parent process of a private headraced, which can restart it after a kill
 *
 * Purpose   Like systemd for a service, the keeper holds the listening sockets and the memfds of
 *           all sessions (sd_notify's FDSTORE, fdstore.h). So `kill -9` of the recording process
 *           (the worker) loses nothing: attached processes continue to write to their rings, new
 *           ones wait in the backlog, and the next worker continues with rings and journal.
 *
 *      headrace run --fork, setsid, exec--> keeper --fork, exec--> worker (private_worker.h)
 *                                             ^                      | FDSTORE=1 FDSTOREREMOVE=1
 *                                             +---- notify socket <--+ READY=1
 *
 *      a signal kills the worker   the keeper starts another, at most HR_KEEPER_RESTARTS in 10 s
 *      the worker exits            the keeper exits with the same status
 *      the keeper is killed        the worker continues alone; if the worker is killed, too, the
 *                                  records that are still in the rings are lost
 *      SIGTERM to the keeper       the keeper sends SIGTERM to the worker, which ends the job
 *      a call of the keeper fails  the same, and the keeper exits
 *
 * Threads   One, in hr_keeper_run.
 */
#ifndef HEADRACE_DAEMON_PRIVATE_KEEPER_H
#define HEADRACE_DAEMON_PRIVATE_KEEPER_H

#define HR_KEEPER_RESTARTS  5u
#define HR_KEEPER_PERIOD_NS UINT64_C(10000000000)
#define HR_KEEPER_LISTENING 2u

struct hr_keeper_config {
	const char *exe;   /* the program that the recording process runs */
	char *const *argv; /* its arguments; the keeper appends the first socket's number */
	/* Listening sockets, which each recording process inherits with consecutive numbers. */
	int listening[HR_KEEPER_LISTENING];
};

/*
 * Restarts the recording process until it exits. Returns its exit status, or 70 after too many
 * restarts or a failed system call. When the first recording process is ready, writes "ready\n" to
 * standard error, and calls hr_keeper_quiet.
 */
int hr_keeper_run(const struct hr_keeper_config *config);

/* Replaces standard error, a pipe of `headrace run`, by $HEADRACE_DAEMON_LOG or /dev/null. */
void hr_keeper_quiet(void);

#endif

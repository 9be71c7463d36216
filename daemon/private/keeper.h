/* SPDX-License-Identifier: Apache-2.0 */
/*
 * keeper.h - the small parent of a private headraced: keeps its descriptors and restarts it
 *
 * Purpose   What systemd does for a service: holds the memfds of all sessions (the protocol is
 *           sd_notify's FDSTORE, see fdstore.h) and the listening sockets, so that `kill -9` of the
 *           daemon loses nothing: records go on landing in the rings, new processes wait in the
 *           backlog, and the next worker finds rings and journal where they were.
 *
 *      headrace run --fork, setsid, exec--> keeper --fork, exec--> worker (private_worker.h)
 *                                             ^                      | FDSTORE=1 FDSTOREREMOVE=1
 *                                             +---- notify socket <--+ READY=1
 *
 *      worker ends by a signal    restarted with LISTEN_FDS, HR_KEEPER_RESTARTS in 10 s at most
 *      worker exits               the keeper exits with the same status
 *      the keeper is killed       the worker goes on alone; only its own death would then lose
 *                                 what is in the rings (the journal holds what it took from them)
 *      SIGTERM to the keeper      passed on; the worker ends the job, and is not restarted
 *
 * Threads   One; everything is done in hr_keeper_run.
 */
#ifndef HEADRACE_DAEMON_PRIVATE_KEEPER_H
#define HEADRACE_DAEMON_PRIVATE_KEEPER_H

#define HR_KEEPER_RESTARTS  5u
#define HR_KEEPER_PERIOD_NS UINT64_C(10000000000)
#define HR_KEEPER_LISTENING 2u

struct hr_keeper_config {
	const char *exe;   /* the worker's program */
	char *const *argv; /* its arguments; the number of its first listening socket is appended */
	/*
	 * Sockets that each worker finds under consecutive numbers: who connects while one is
	 * restarted waits for the next.
	 */
	int listening[HR_KEEPER_LISTENING];
};

/*
 * Runs workers until one exits by itself or restarts are used up. Returns the worker's exit status,
 * or 70 when it was given up. Once the first worker is ready, "ready\n" goes to standard error,
 * which is then closed.
 */
int hr_keeper_run(const struct hr_keeper_config *config);

/* Standard error to $HEADRACE_DAEMON_LOG, or nowhere: who started the daemon waits for its end. */
void hr_keeper_quiet(void);

#endif

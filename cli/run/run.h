/* SPDX-License-Identifier: Apache-2.0 */
/* run.h - the parts of `headrace run`, and the state that they share */
#ifndef HEADRACE_CLI_RUN_RUN_H
#define HEADRACE_CLI_RUN_RUN_H

#include <limits.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "cli/run/job.h"
#include "cli/run/run_options.h"
#include "cli/summary/summary.h"
#include "daemon/control/control.h"
#include "daemon/control/private.h"
#include "net/tls_find.h"

/* ---- the command (child.c) ------------------------------------------------------------------- */

/*
 * CMD stays in the process group of `headrace run`, so CMD can use the terminal, and signals of the
 * terminal reach it. `headrace run` forwards signals of other processes to CMD. When CMD stops
 * (SIGSTOP), `headrace run` stops too, so that the shell notices the stop. A program has only one
 * struct hr_child, because hr_child_init changes the signal mask of the process.
 */
struct hr_child {
	pid_t pid;
	int signal_fd;		  /* if readable: call hr_child_signals */
	sigset_t before;	  /* the signal mask of CMD */
	struct sigaction sigchld; /* CMD's action for SIGCHLD */
	bool ended;
	int status; /* wait status; valid if `ended` */
};

/*
 * Call it first. Files of headrace are usable under any umask, and a limit of file size (ulimit -f)
 * is an error and no signal. CMD gets its umask and its action for SIGXFSZ back.
 */
void hr_child_prepare(void);

/* Blocks the signals to forward. Call it before hr_child_start. */
int hr_child_init(struct hr_child *child);

/* Starts the program argv[0], searched in PATH. Returns 0, or -errno if no process runs. */
int hr_child_start(struct hr_child *child, char *const argv[], char *const environment[]);

/*
 * Handles signals of signal_fd. Sets `ended` when CMD has ended; from then on, only SIGINT,
 * SIGTERM, SIGHUP and SIGQUIT make signal_fd readable.
 */
void hr_child_signals(struct hr_child *child);

/* Returns the exit status of CMD as a shell does: 0 to 255, or 128 + signal. */
int hr_child_exit_status(const struct hr_child *child);

/* Replaces this process by the command. On failure, reports it and returns its exit status. */
int hr_child_exec(char *const argv[], char *const environment[]);

/* Reports that exec failed. Returns 127 (not found) or 126 (not executable). */
int hr_child_exec_status(const char *name, int error);

void hr_child_done(struct hr_child *child);

/* ---- the connection to the private headraced of the job (link.c) ----------------------------- */

/*
 * Starts headraced or joins the running one, joins again if headraced restarts, and leaves.
 *
 *      hr_link_open --> LINKED --connection ends--> REJOINING --`joined`--> LINKED
 *                         |                           +--no connection--> GONE: CMD is not recorded
 *                         +--hr_link_leave--> CLOSED
 */
enum hr_link_state { HR_LINK_CLOSED, HR_LINK_LINKED, HR_LINK_REJOINING, HR_LINK_GONE };

struct hr_link {
	enum hr_link_state state;
	int fd; /* if readable: call hr_link_read */
	struct hr_private_names names;
	int rank;
	pid_t cmd;
	unsigned rejoins;
	bool leaving; /* hr_link_leave was called */
	/* last received message: `joined` after hr_link_open, `left` after hr_link_leave */
	Headrace__Control *last;
};

/*
 * Joins the headraced of the job, or starts the program `headraced` with `config`. Sets
 * config->names. *ret_error: why this failed, malloc'ed or NULL.
 */
int hr_link_open(struct hr_link *link, struct hr_private_config *config, int rank,
		 const char *headraced, char **ret_error);

/* Sends the pid of CMD, which has started. */
void hr_link_started(struct hr_link *link, pid_t cmd);

/* Reads messages without waiting. Prints notices, and joins again if headraced has restarted. */
void hr_link_read(struct hr_link *link);

/*
 * Ends the recording: headraced waits at most linger_ns for attached processes, then finishes.
 * `status`: wait status of CMD. If interrupt_fd (a signalfd, or -1) becomes readable, headraced
 * stops waiting; the second time, this function returns -EINTR.
 * Returns 0 if link->last is `left`; the connection stays open if `drains` is set. -ECONNRESET:
 * headraced has ended; -ETIMEDOUT: it does not answer.
 */
int hr_link_leave(struct hr_link *link, uint64_t linger_ns, int status, int interrupt_fd);

void hr_link_close(struct hr_link *link);
/* also accepts a link that is not open */
void hr_link_done(struct hr_link *link);

/* ---- -o tcp://...: the spool, and what was sent (run_uplink.c) ------------------------------- */

/*
 * headraced records into a spool of this user, and sends from it while the job runs. struct
 * hr_run_uplink owns its strings; hr_run_uplink_done frees them.
 */
struct hr_run_uplink {
	const char *collectors; /* value of -o; NULL: the data stays in a store */
	char first[300];
	char *spool;
	struct hr_tls_paths tls; /* certificate and key, if a collector needs them */
	uint64_t spool_bytes;
};

/*
 * Makes the spool (HEADRACE_SPOOL, HEADRACE_SPOOL_SIZE) and finds certificates (net/tls_find.h).
 * Reports mistakes. `node` becomes a part of the name, because nodes may share the file system.
 */
int hr_run_uplink_init(const char *collectors, const char *node, struct hr_run_uplink *ret);
void hr_run_uplink_done(struct hr_run_uplink *u);

/* Reports what the summary lacks. Commands that the summary prints then query the collector. */
void hr_run_uplink_adapt(const struct hr_run_uplink *u, struct hr_summary *s);

/*
 * Call it after `left`. Sends `summary_printed`, and waits until all frames are sent, the drain
 * time is over, or a signal arrives. Then reports what was sent, or how to send the remaining
 * frames. `headraced` is the path of the program.
 */
void hr_run_uplink_drain(const struct hr_run_uplink *u, struct hr_link *link, int interrupt_fd,
			 const char *headraced);

void hr_run_uplink_report_unsent(const struct hr_run_uplink *u, const char *headraced);

/* ---- the lists of --exclude and --include (filters.c) ---------------------------------------- */

/*
 * The shim (common/path_filter.h) compares absolute paths with a limited number of patterns. These
 * functions make relative patterns absolute, and refuse lists with too many patterns.
 */

/*
 * Makes relative patterns absolute. Patterns that begin with `*` or `?` stay, because they match in
 * every folder. Errors: -ENOMEM; -EINVAL if the path of the working directory contains a comma or a
 * wildcard; those of getcwd.
 */
int hr_filter_absolute(const char *list, char **ret);

/*
 * Checks that the shim can hold the patterns of an option (`lists`, NULL-terminated) and of an
 * environment variable. Returns 0, or -E2BIG after it has reported the limit.
 */
int hr_filter_check(const char *option, const char *variable, const char *const *lists);

/* ---- a run ----------------------------------------------------------------------------------- */

struct hr_run_state {
	struct hr_run_options options;
	struct hr_job job;
	struct hr_private_config config;
	struct hr_link link;
	struct hr_child child;
	char store[PATH_MAX]; /* absolute path; if there are collectors, path of the spool */
	int store_fd;	      /* of this folder, opened with O_PATH; 0: none */
	struct hr_run_uplink uplink;
	char *library, *headraced;
	char *python; /* folder of the start-up module; NULL: not installed */
	char **environment;
	char *exclude[HR_RUN_FILTERS + 1]; /* values of --exclude, made absolute */
	char *include[HR_RUN_FILTERS + 1];
};

/* Call it when CMD has ended: ends the recording, reports problems, and prints the summary. */
void hr_run_finish(struct hr_run_state *run);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * child.h - starts CMD, waits for it, forwards signals to it
 *
 * CMD stays in the process group of `headrace run`, so CMD can use the terminal, and signals of the
 * terminal reach it. `headrace run` forwards signals of other processes to CMD. When CMD stops
 * (SIGSTOP), `headrace run` stops too, so that the shell notices the stop. A program has only one
 * struct hr_child, because hr_child_init changes the signal mask of the process.
 */
#ifndef HEADRACE_CLI_RUN_CHILD_H
#define HEADRACE_CLI_RUN_CHILD_H

#include <signal.h>
#include <stdbool.h>
#include <sys/types.h>

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

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * child.h - starts CMD, waits for it, forwards signals to it
 *
 * CMD stays in the process group of `headrace run`, so that it owns the terminal. run forwards
 * signals of other processes, but not those of the terminal, which reach CMD directly. When CMD
 * stops (SIGSTOP), run stops too, so that the shell notices it. A program has only one struct,
 * because hr_child_init changes the signal mask of the process.
 */
#ifndef HEADRACE_CLI_RUN_CHILD_H
#define HEADRACE_CLI_RUN_CHILD_H

#include <signal.h>
#include <stdbool.h>
#include <sys/types.h>

struct hr_child {
	pid_t pid;
	int signal_fd;		  /* readable: call hr_child_signals */
	sigset_t before;	  /* the signal mask of CMD */
	struct sigaction sigchld; /* CMD's action for SIGCHLD */
	bool ended;
	int status; /* status as from waitpid, valid if `ended` */
};

/* Checks that exec would find this program in PATH. 0, or the -errno of exec. */
int hr_child_find(const char *name);

/* Blocks the signals to forward. Call it before hr_child_start. */
int hr_child_init(struct hr_child *child);

/* Starts argv[0], found in PATH. 0, or -errno: no process runs. */
int hr_child_start(struct hr_child *child, char *const argv[], char *const environment[]);

/*
 * Handles signals of signal_fd; sets `ended` when CMD has ended. Afterwards signal_fd is readable
 * only for SIGINT, SIGTERM, SIGHUP and SIGQUIT, which shorten waits of run.
 */
void hr_child_signals(struct hr_child *child);

/* The exit status as shells return it: 0..255, or 128 + signal. */
int hr_child_exit_status(const struct hr_child *child);

/* Replaces this process by the command. On failure, reports it and returns its exit status. */
int hr_child_exec(char *const argv[]);

/* Reports that exec failed. Returns 127 (not found) or 126 (not executable). */
int hr_child_exec_status(const char *name, int error);

void hr_child_done(struct hr_child *child);

#endif

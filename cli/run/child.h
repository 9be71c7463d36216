/* SPDX-License-Identifier: Apache-2.0 */
/*
 * child.h - CMD: started, waited for, signalled
 *
 * Purpose   CMD stays in the process group of `headrace run`, so that it owns the terminal as it
 *           would without headrace. Signals sent to run by a process are passed on; those that the
 *           terminal sends reach CMD by themselves and are not sent twice. When CMD stops itself
 *           (SIGSTOP), run stops too, so that a shell sees it.
 * Owner     One struct per program: it owns the signal mask.
 * Threads   One.
 */
#ifndef HEADRACE_CLI_RUN_CHILD_H
#define HEADRACE_CLI_RUN_CHILD_H

#include <signal.h>
#include <stdbool.h>
#include <sys/types.h>

struct hr_child {
	pid_t pid;
	int signal_fd;		  /* readable: call hr_child_signals */
	sigset_t before;	  /* the mask that CMD gets */
	struct sigaction sigchld; /* likewise */
	bool ended;
	int status; /* as waitpid gives it, once ended */
};

/* Is there a program of this name to be executed, on PATH if it has no slash? 0, or -errno as exec would say. */
int hr_child_find(const char *name);

/* Blocks the signals that are to be passed on; before hr_child_start. */
int hr_child_init(struct hr_child *child);

/*
 * Starts argv[0], found through PATH, with `environment`. -errno of exec when it cannot be
 * executed; nothing runs then.
 */
int hr_child_start(struct hr_child *child, char *const argv[], char *const environment[]);

/*
 * Handles what is pending on signal_fd; sets ended. After that signal_fd is readable when a signal
 * (SIGINT, SIGTERM, SIGHUP, SIGQUIT) asks run itself to hurry.
 */
void hr_child_signals(struct hr_child *child);

/* The exit status that shells give: 0..255, or 128 + signal. */
int hr_child_exit_status(const struct hr_child *child);

/* exec without recording anything; returns the exit status of the failure. */
int hr_child_exec(char *const argv[]);

/* Exit status for an exec that failed with this error: 127 not found, 126 not executable. */
int hr_child_exec_status(const char *name, int error);

void hr_child_done(struct hr_child *child);

#endif

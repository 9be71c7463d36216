/* SPDX-License-Identifier: Apache-2.0 */
/*
 * alert_command.h - runs a command for each alert, with the alert on its standard input
 *
 * Purpose   No shell: blanks separate the words of the command. A command that runs too long is
 *           killed, with its children. Its standard error is the collector's.
 * Owner     struct hr_alert_commands owns the processes.
 * Threads   The loop.
 */
#ifndef HEADRACE_COLLECTOR_ALERT_COMMAND_H
#define HEADRACE_COLLECTOR_ALERT_COMMAND_H

#include <stddef.h>
#include <stdint.h>
#include <uv.h>

#define HR_ALERT_COMMAND_MOST 8u     /* processes at a time */
#define HR_ALERT_COMMAND_MS   30000u /* time limit of a process */

struct hr_alert_process;

struct hr_alert_commands {
	uv_loop_t *loop;
	/* Called when a process has ended. `error`: what went wrong; NULL: nothing. */
	void (*done)(void *self, uint64_t id, const char *error);
	void *self;
	struct hr_alert_process *first;
	size_t n; /* processes, also those whose handles the loop still closes */
};

/* Starts a process. Frees `body` (malloc'ed) in all cases. Returns 0, or -errno without `done`. */
int hr_alert_command_run(struct hr_alert_commands *c, const char *command, uint64_t id, char *body);

/* Call it at least once a second. Kills processes that have reached their time limit. */
void hr_alert_commands_tick(struct hr_alert_commands *c, uint64_t now_ms);
void hr_alert_commands_stop(struct hr_alert_commands *c); /* kills all processes */

/* Copies the first word, which is the program, to `ret`. */
void hr_alert_command_program(const char *command, char *ret, size_t bytes);

#endif

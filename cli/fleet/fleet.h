/* SPDX-License-Identifier: Apache-2.0 */
/* fleet.h - what all jobs of a cluster do now, from a collector (proto/wire.proto: Look, Fleet) */
#ifndef HEADRACE_CLI_FLEET_FLEET_H
#define HEADRACE_CLI_FLEET_FLEET_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "proto/wire.pb-c.h"

struct hr_fleet_command {
	const char *collector;	  /* "tcp://HOST[:PORT]" or "unix://PATH" */
	const char *job;	  /* id or name; NULL: all jobs */
	const char *by;		  /* which jobs come first (Look.by); NULL: "metadata" */
	uint64_t every_ns, count; /* count 0: without end */
	bool json;
	bool status; /* a line for each job, and no screen */
};

/* Returns the exit status of the command: 0, 1, HR_EXIT_USAGE or HR_EXIT_NO_SERVICE. */
int hr_fleet_run(const struct hr_fleet_command *c);

/* ---- showing ---- */

struct hr_fleet_display {
	const Headrace__Fleet *fleet;
	const char *collector, *by;
	bool brief;   /* a line for each job (headrace status) */
	size_t lines; /* limit of lines; 0: none */
};

void hr_fleet_print(FILE *out, const struct hr_fleet_display *d);

#endif

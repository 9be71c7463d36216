/* SPDX-License-Identifier: Apache-2.0 */
/*
 * uplink_command.h - `headraced uplink SPOOL --collector LIST`: sends the frames of a spool
 *
 * Sends streams of earlier daemons; the node service runs it. One table of options is for parsing,
 * --help and the man page. One thread, and the uplink's.
 */
#ifndef HEADRACE_DAEMON_UPLINK_UPLINK_COMMAND_H
#define HEADRACE_DAEMON_UPLINK_UPLINK_COMMAND_H

#include <stdio.h>

/*
 * argv[0] is "uplink". Returns the exit status: 0 (all was sent or discarded), 1 (not all), 2
 * (usage) or 66 (no such spool or job).
 */
int hr_uplink_command(int argc, char **argv);

void hr_uplink_man(FILE *to); /* writes the options for headraced(8) */

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * uplink_command.h - `headraced uplink SPOOL --collector LIST`: sends the frames of a spool
 *
 * For streams of earlier daemons, and services that only send. One thread, and the uplink's.
 */
#ifndef HEADRACE_DAEMON_UPLINK_UPLINK_COMMAND_H
#define HEADRACE_DAEMON_UPLINK_UPLINK_COMMAND_H

/* argv[0]: "uplink". Exit: 0 all sent or discarded, 1 not, 2 usage, 66 no such spool or job. */
int hr_uplink_command(int argc, char **argv);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* schema.h - the command `headrace-collector schema clickhouse`; one thread */
#ifndef HEADRACE_COLLECTOR_SCHEMA_H
#define HEADRACE_COLLECTOR_SCHEMA_H

/* Prints SQL. The arguments follow the word `schema`. Returns the exit status. */
int hr_schema_command(int argc, char **argv);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * server.h - headrace-collector as a whole: what is started and stopped in which order
 *
 * Purpose   Takes the store, listens, and runs until SIGTERM or SIGINT. SIGHUP reads the configuration and the certificates anew.
 * Owner     main.c.
 * Threads   The caller's thread becomes the loop's.
 *
 * The end   No connection is taken and nothing is read any more; what has come is committed and acknowledged; segments are
 *           sealed; peers are told. 10 s at most.
 */
#ifndef HEADRACE_COLLECTOR_SERVER_H
#define HEADRACE_COLLECTOR_SERVER_H

#include "collector/config.h"

#define HR_EXIT_STORE 125 /* the store cannot be had */

/* Returns the exit status of the program. Says itself what goes wrong. */
int hr_server_run(const struct hr_config_source *from, struct hr_collector_config *config);

#endif

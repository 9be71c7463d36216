/* SPDX-License-Identifier: Apache-2.0 */
/*
 * server.h - headrace-collector as a whole: the order of start and stop
 *
 * Purpose   Locks the store, listens, and runs until SIGTERM or SIGINT. SIGHUP reloads the
 *           configuration and the certificates.
 * Owner     main.c.
 * Threads   The caller's thread becomes the loop's.
 *
 * The end   Connections are refused and reading stops; received frames are committed and
 *           acknowledged; segments are sealed; peers are notified. 10 s at most.
 */
#ifndef HEADRACE_COLLECTOR_SERVER_H
#define HEADRACE_COLLECTOR_SERVER_H

#include "collector/config.h"

#define HR_EXIT_STORE 125 /* the store cannot be locked */

/* Returns the exit status of the program. Logs errors. */
int hr_server_run(const struct hr_config_source *from, struct hr_collector_config *config);

#endif

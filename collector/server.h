/* SPDX-License-Identifier: Apache-2.0 */
/*
 * server.h - starts and stops headrace-collector
 *
 * The collector locks the store, and runs until SIGTERM or SIGINT. SIGHUP reloads the configuration
 * and certificates. To end, the collector refuses connections, stops reading, stores and
 * acknowledges received frames, seals segments and notifies peers. This takes at most 10 s.
 */
#ifndef HEADRACE_COLLECTOR_SERVER_H
#define HEADRACE_COLLECTOR_SERVER_H

#include "collector/config.h"

#define HR_EXIT_STORE 125 /* exit status: the store cannot be locked */

/* Returns the exit status of the program. Logs errors. */
int hr_server_run(const struct hr_config_source *from, struct hr_collector_config *config);

#endif

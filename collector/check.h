/* SPDX-License-Identifier: Apache-2.0 */
/*
 * check.h - is there what a configuration names? (--check-config)
 *
 * Purpose   Files, folders, addresses, the group and munged, looked at without starting anything and without leaving anything
 *           behind. A collector that runs with the same configuration is no mistake.
 * Threads   Waits for the resolver, the user database and munged; a tool's main thread.
 */
#ifndef HEADRACE_COLLECTOR_CHECK_H
#define HEADRACE_COLLECTOR_CHECK_H

#include "collector/config.h"

/* As the user who asks: the collector's should. False: something is missing, and each was said. */
bool hr_collector_check(const struct hr_collector_config *c, void (*say)(const char *text));

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * check.h - checks that what a configuration names exists (--check-config)
 *
 * Purpose   Files, folders, addresses, the group and munged are checked without starting anything
 *           and without leaving anything behind. A running collector with the same configuration is
 *           no mistake.
 * Threads   Waits for the resolver, the user database and munged; a tool's main thread.
 */
#ifndef HEADRACE_COLLECTOR_CHECK_H
#define HEADRACE_COLLECTOR_CHECK_H

#include "collector/config.h"

/* Run it as the collector's user. False: mistakes were found, and each was reported. */
bool hr_collector_check(const struct hr_collector_config *c, void (*report)(const char *text));

#endif

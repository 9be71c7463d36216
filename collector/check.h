/* SPDX-License-Identifier: Apache-2.0 */
/*
 * check.h - checks that files, folders and addresses of a configuration exist (--check-config)
 *
 * Checks the group and munged, too. Starts nothing and leaves nothing behind. May wait for the
 * resolver, the user database and munged.
 */
#ifndef HEADRACE_COLLECTOR_CHECK_H
#define HEADRACE_COLLECTOR_CHECK_H

#include "collector/config.h"

/* Runs as the collector's user. Returns false after it has reported each mistake. */
bool hr_collector_check(const struct hr_collector_config *c, void (*report)(const char *text));

#endif

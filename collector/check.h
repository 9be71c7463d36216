/* SPDX-License-Identifier: Apache-2.0 */
/*
 * check.h - --check-config: checks that files, folders, addresses, the group and munged exist
 *
 * The check leaves nothing on disk. It may wait for the resolver, the user database and munged.
 */
#ifndef HEADRACE_COLLECTOR_CHECK_H
#define HEADRACE_COLLECTOR_CHECK_H

#include "collector/config.h"

/* Call it as the user of the collector. Returns false after it has reported each mistake. */
bool hr_collector_check(const struct hr_collector_config *c, void (*report)(const char *text));

#endif

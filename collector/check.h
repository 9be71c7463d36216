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

struct hr_ch_target;

/*
 * Parses the address of ClickHouse, and checks that it accepts us and has all tables. Logs what is
 * wrong. Returns 0 also if ClickHouse does not answer: the nodes keep their data until it does.
 * Call hr_ch_target_done(ret) in all cases.
 */
int hr_collector_take_sink(const char *sink, struct hr_ch_target *ret);

#endif

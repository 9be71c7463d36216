/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fleet_json.h - what jobs do now (wire.proto: Fleet), as JSON
 *
 * Purpose   For `headrace top --json`, and for the alerts of a collector: both have the same keys.
 * Owner     The caller owns the messages, and the FILE. Any thread.
 */
#ifndef HEADRACE_COMMON_FLEET_JSON_H
#define HEADRACE_COMMON_FLEET_JSON_H

#include <stdio.h>

#include "common/text.h"
#include "proto/wire.pb-c.h"

void hr_fleet_json(FILE *out, const Headrace__Fleet *fleet); /* one line */

/* Writes one job. `key` is NULL in arrays. */
void hr_fleet_json_job(struct hr_json *j, const char *key, const Headrace__FleetJob *m);

#endif

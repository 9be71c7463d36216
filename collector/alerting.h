/* SPDX-License-Identifier: Apache-2.0 */
/*
 * alerting.h - alerts of a collector: compares jobs with the rules, and sends messages
 *
 * Purpose   Connects alerts.h with the log, a command and an HTTP receiver, which the keys alerts,
 *           alert_command, alert_url and alert_format configure (docs/alerts.md).
 * Owner     The server.
 * Threads   The loop. Requests run in libuv's pool.
 * Memory    Messages are made when they are sent: at most HR_ALERT_URL_MOST and
 *           HR_ALERT_COMMAND_MOST at a time. Without an answer, none is queued.
 */
#ifndef HEADRACE_COLLECTOR_ALERTING_H
#define HEADRACE_COLLECTOR_ALERTING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <uv.h>

#include "collector/alerts.h"
#include "collector/config.h"
#include "collector/peers.h"

struct hr_alerting;

/* `listen`: the address that the collector listens at. Returns 0 or -ENOMEM. */
int hr_alerting_new(uv_loop_t *loop, const struct hr_peers *peers, const char *listen,
		    struct hr_alerting **ret);
/* Sets rules and receivers. The texts must be valid until hr_alerting_free. */
void hr_alerting_change(struct hr_alerting *a, const struct hr_collector_config *c);
void hr_alerting_tick(struct hr_alerting *a); /* call it once a second */

/* Ends what runs. Before hr_alerting_free, run the loop until hr_alerting_idle. Accept NULL. */
void hr_alerting_stop(struct hr_alerting *a);
bool hr_alerting_idle(const struct hr_alerting *a);
void hr_alerting_free(struct hr_alerting *a);

struct hr_alerting_stats {
	size_t firing[HR_ALERT_N_KINDS];
	uint64_t delivered[HR_ALERT_N_SINKS], failed[HR_ALERT_N_SINKS]; /* messages */
	uint64_t ignored; /* alerts above the limits */
};
void hr_alerting_stats(const struct hr_alerting *a, struct hr_alerting_stats *ret);

#endif

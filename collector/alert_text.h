/* SPDX-License-Identifier: Apache-2.0 */
/*
 * alert_text.h - an alert as a sentence, and as JSON (docs/alerts.md)
 *
 * Texts of other machines are escaped, so that the result is UTF-8 without control bytes. The
 * caller frees results. Pure functions.
 */
#ifndef HEADRACE_COLLECTOR_ALERT_TEXT_H
#define HEADRACE_COLLECTOR_ALERT_TEXT_H

#include "collector/alerts.h"

struct hr_alert_view {
	const struct hr_alert *alert;
	const Headrace__FleetJob *job; /* NULL: its nodes are not connected */
	const char *address;	       /* of the collector, as clients write it */
	uint64_t real_ns;
};

/* What happens, in which job, where, since when, and what to do. NULL: no memory. */
char *hr_alert_sentence(const struct hr_alert_view *v);

/* One object, in one line. With `manager`: the list of one alert that Alertmanager's API takes. */
char *hr_alert_json(const struct hr_alert_view *v, bool manager);

#endif

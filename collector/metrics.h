/* SPDX-License-Identifier: Apache-2.0 */
/* metrics.h - the metrics of a collector for Prometheus (docs/metrics.md) */
#ifndef HEADRACE_COLLECTOR_METRICS_H
#define HEADRACE_COLLECTOR_METRICS_H

#include <stdio.h>

#include "collector/alerting.h"
#include "collector/peers.h"
#include "collector/retention.h"
#include "net/metrics.h"

struct hr_collector_parts {
	struct hr_ingest *ingest;
	const struct hr_peers *peers;
	const struct hr_queries *queries;
	struct hr_retention *retention; /* NULL: retention is off */
	const struct hr_alerting *alerting;
};

void hr_collector_metrics_write(const struct hr_collector_parts *parts, FILE *out);

#endif

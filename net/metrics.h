/* SPDX-License-Identifier: Apache-2.0 */
/*
 * metrics.h - a daemon's metrics for a Prometheus server: text format 0.0.4 over HTTP
 *
 * The server answers GET /metrics at one address, without authentication, so any client that can
 * connect may read. The caller of hr_metrics_open owns the server. Limits and threads are those of
 * http.h.
 */
#ifndef HEADRACE_NET_METRICS_H
#define HEADRACE_NET_METRICS_H

#include <stdio.h>
#include <uv.h>

enum hr_metric_type { HR_METRIC_COUNTER, HR_METRIC_GAUGE, HR_METRIC_HISTOGRAM };

/* Starts a metric. `help` is one line without a backslash. */
void hr_metric(FILE *out, const char *name, enum hr_metric_type type, const char *help);

/* Writes a value. Labels: name, value, name, value..., NULL. Label values are escaped (text.h). */
__attribute__((sentinel)) void hr_metric_value(FILE *out, const char *name, double value, ...);

void hr_metric_single(FILE *out, const char *name, enum hr_metric_type type, const char *help,
		      double value);

struct hr_metrics;

/* `address` is that of struct hr_http_config. The texts must outlive the server. */
struct hr_metrics_config {
	const char *address;
	const char *component; /* name of the program: "node" */
	const char *version;
	uint64_t limit_ms;		      /* time limit of a connection; 0: HR_HTTP_MS */
	void (*write)(void *self, FILE *out); /* writes all metrics of this daemon */
	void *self;
};

/* Listens. On failure, *ret_error (malloc'ed) is a message for the user. */
int hr_metrics_open(uv_loop_t *loop, const struct hr_metrics_config *config,
		    struct hr_metrics **ret, char **ret_error);
/* For a daemon: logs the address or the failure. NULL: failed, or no address is configured. */
struct hr_metrics *hr_metrics_serve(uv_loop_t *loop, const struct hr_metrics_config *config);
const char *hr_metrics_address(const struct hr_metrics *m); /* the address with the actual port */
void hr_metrics_close(struct hr_metrics *m);		    /* accepts NULL */

#endif

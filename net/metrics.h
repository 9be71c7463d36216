/* SPDX-License-Identifier: Apache-2.0 */
/*
 * metrics.h - a daemon's metrics for a Prometheus server: text format 0.0.4 over HTTP
 *
 * GET /metrics at one address, without authentication: any client that can connect may read.
 *
 * Limits    A request has HR_METRICS_REQUEST_MOST bytes, a connection one request and HR_METRICS_MS
 *           in all, the server HR_METRICS_CLIENTS connections. A new one replaces the oldest, so
 *           that waiting clients cannot block others.
 * Owner     The caller of hr_metrics_open; after hr_metrics_close the loop frees it.
 * Threads   The loop's.
 *
 *      reading --(a whole head, or too much)--> answering --(written)--> lingering --(the client's end)--> closed
 *         +---(end, HR_METRICS_MS, a newer one)------+---------------------+-----------------------------------^
 */
#ifndef HEADRACE_NET_METRICS_H
#define HEADRACE_NET_METRICS_H

#include <stdio.h>
#include <uv.h>

#define HR_METRICS_REQUEST_MOST 4096u
#define HR_METRICS_CLIENTS	16u
#define HR_METRICS_MS		5000u

enum hr_metric_type { HR_METRIC_COUNTER, HR_METRIC_GAUGE, HR_METRIC_HISTOGRAM };

/* Starts a metric. `help` is one line without a backslash. */
void hr_metric(FILE *out, const char *name, enum hr_metric_type type, const char *help);

/* Labels: names and values alternating, then NULL. Values: any bytes (escaped as in text.h). */
__attribute__((sentinel)) void hr_metric_value(FILE *out, const char *name, double value, ...);

void hr_metric_single(FILE *out, const char *name, enum hr_metric_type type, const char *help,
		      double value);

struct hr_metrics;

/*
 * `address`: tcp://HOST:PORT (the first address of a name; port 0: any), or unix:///PATH, made
 * 0660. The texts must outlive the server.
 */
struct hr_metrics_config {
	const char *address;
	const char *component; /* the program: "node" */
	const char *version;
	uint64_t limit_ms;		      /* of a connection; 0: HR_METRICS_MS */
	void (*write)(void *self, FILE *out); /* writes all metrics that only this component has */
	void *self;
};

/* Listens. On failure *ret_error (malloc'ed) is a message for the user. */
int hr_metrics_open(uv_loop_t *loop, const struct hr_metrics_config *config,
		    struct hr_metrics **ret, char **ret_error);
/* For a daemon: logs the address, or the failure. NULL: failed, or no address was given. */
struct hr_metrics *hr_metrics_serve(uv_loop_t *loop, const struct hr_metrics_config *config);
const char *hr_metrics_address(const struct hr_metrics *m); /* with the actual port */
void hr_metrics_close(struct hr_metrics *m);		    /* accepts NULL */

/* The HTTP status for the part of a request received so far; 0: incomplete. For tests. */
int hr_metrics_status(const char *request, size_t bytes);

#endif

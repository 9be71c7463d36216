/* SPDX-License-Identifier: Apache-2.0 */
/*
 * metrics.h - a daemon's numbers for a Prometheus server: its text format 0.0.4, and as much HTTP as hands it out
 *
 * Purpose   GET /metrics at one address. Nobody is asked who they are: who may connect may read.
 * Limits    A request has HR_METRICS_REQUEST_MOST bytes, a connection one request and HR_METRICS_MS for all of it, the server
 *           HR_METRICS_CLIENTS connections: a newer one takes the place of the oldest, so that nobody keeps others out by waiting.
 * Owner     Whoever opens it; hr_metrics_close gives it to the loop, which frees it.
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

/* ---- the text ---------------------------------------------------------------------------------- */

enum hr_metric_type { HR_METRIC_COUNTER, HR_METRIC_GAUGE, HR_METRIC_HISTOGRAM };

/* What the values behind it are. `help` is one line without a backslash. */
void hr_metric(FILE *out, const char *name, enum hr_metric_type type, const char *help);

/* One value, with labels: names and values in turns, then NULL. Values may be any bytes, and are escaped as text.h does. */
__attribute__((sentinel)) void hr_metric_value(FILE *out, const char *name, double value, ...);

/* A metric without labels. */
void hr_metric_single(FILE *out, const char *name, enum hr_metric_type type, const char *help,
		      double value);

/* ---- the server -------------------------------------------------------------------------------- */

struct hr_metrics;

/* `address`: tcp://HOST:PORT, the first of a name's, port 0: any; or unix:///PATH, made 0660. The texts outlive the server. */
struct hr_metrics_config {
	const char *address;
	const char *component; /* what runs: "node" */
	const char *version;
	uint64_t limit_ms;		      /* of a connection; 0: HR_METRICS_MS */
	void (*write)(void *self, FILE *out); /* all metrics but those of every component */
	void *self;
};

/* Listens. Failures: *ret_error, malloc'ed, says for people what is wrong. */
int hr_metrics_open(uv_loop_t *loop, const struct hr_metrics_config *config,
		    struct hr_metrics **ret, char **ret_error);
/* The same for a daemon, which runs on without: its log says where they are, or why not. NULL, too, where no address is given. */
struct hr_metrics *hr_metrics_serve(uv_loop_t *loop, const struct hr_metrics_config *config);
const char *hr_metrics_address(const struct hr_metrics *m); /* with the port that 0 became */
void hr_metrics_close(struct hr_metrics *m);		    /* accepts NULL */

/* What is to be answered to a request of which this has come: a status of HTTP, or 0: more has to come. For tests. */
int hr_metrics_judge(const char *request, size_t bytes);

#endif

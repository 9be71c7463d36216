/* SPDX-License-Identifier: Apache-2.0 */
#include "net/metrics.h"

#include <math.h>
#include <stdarg.h>
#include <string.h>
#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>

#include "common/log.h"
#include "common/now.h"
#include "common/text.h"
#include "net/http.h"

#define PATH "/metrics"

struct hr_metrics {
	struct hr_metrics_config config;
	double start_s; /* when the daemon started, wall clock */
	struct hr_http *http;
};

static void write_metrics(struct hr_metrics *m, FILE *out)
{
	const struct hr_metrics_config *c = &m->config;

	hr_metric(out, "headrace_build_info", HR_METRIC_GAUGE,
		  "Always 1; the labels identify the build.");
	hr_metric_value(out, "headrace_build_info", 1, "component", c->component, "version",
			c->version, NULL);
	hr_metric(out, "headrace_up", HR_METRIC_GAUGE, "Always 1 while the daemon answers.");
	hr_metric_value(out, "headrace_up", 1, "component", c->component, NULL);
	hr_metric(out, "headrace_start_time_seconds", HR_METRIC_GAUGE,
		  "Start time of the daemon, seconds since 1970.");
	hr_metric_value(out, "headrace_start_time_seconds", m->start_s, "component", c->component,
			NULL);
	c->write(c->self, out);
}

static int answer_metrics(void *self, const struct hr_http_request *r, struct hr_http_answer *ret)
{
	FILE *out = hr_http_target_is(r, PATH) ? open_memstream(&ret->body, &ret->bytes) : NULL;
	bool failed;

	if (!out)
		return hr_http_target_is(r, PATH) ? 500 : 404;
	write_metrics(self, out);
	failed = ferror(out) != 0;
	ret->type = "text/plain; version=0.0.4; charset=utf-8";
	return fclose(out) != 0 || failed ? 500 : 200;
}

int hr_metrics_open(uv_loop_t *loop, const struct hr_metrics_config *config,
		    struct hr_metrics **ret, char **ret_error)
{
	struct hr_metrics *m = calloc(1, sizeof(*m));
	struct hr_http_config http = {config->address, config->limit_ms, answer_metrics, m};
	int r;

	if (!m)
		return -ENOMEM;
	m->config = *config;
	m->start_s = (double)hr_now_ms(CLOCK_REALTIME) / 1000;
	r = hr_http_open(loop, &http, &m->http, ret_error);
	if (r < 0)
		free(m);
	else
		*ret = m;
	return r;
}

const char *hr_metrics_address(const struct hr_metrics *m)
{
	return hr_http_address(m->http);
}

void hr_metrics_close(struct hr_metrics *m)
{
	if (m)
		hr_http_close(m->http);
	free(m);
}

struct hr_metrics *hr_metrics_serve(uv_loop_t *loop, const struct hr_metrics_config *config)
{
	struct hr_metrics *m = NULL;
	char *error = NULL;

	if (!hr_text_given(config->address))
		return NULL;
	if (hr_metrics_open(loop, config, &m, &error) < 0)
		hr_log(HR_LOG_ERROR, "metrics: %s", error ? error : "out of memory");
	else
		hr_log(HR_LOG_INFO, "metrics at %s", hr_metrics_address(m));
	free(error);
	return m;
}

/* ---- the text -------------------------------------------------------------------------------- */

#define EXACT_MOST 9007199254740992.0 /* 2^53: a double represents all integers up to this number */

void hr_metric(FILE *out, const char *name, enum hr_metric_type type, const char *help)
{
	static const char *const types[] = {"counter", "gauge", "histogram"};

	fprintf(out, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, types[type]);
}

/* Writes a label in valid UTF-8. Otherwise, a Prometheus server would reject the whole text. */
static void write_label(FILE *out, const char *name, const char *value)
{
	char *clean = hr_text_escaped(value, strlen(value));

	fprintf(out, "%s=\"", name);
	for (const char *at = clean ? clean : ""; *at; at++) {
		if (*at == '\\' || *at == '"')
			fputc('\\', out);
		fputc(*at, out);
	}
	fputc('"', out);
	free(clean);
}

static void write_number(FILE *out, double value)
{
	if (fabs(value) < EXACT_MOST && value == floor(value))
		fprintf(out, " %.0f\n", value);
	else
		fprintf(out, " %.9g\n", value);
}

void hr_metric_value(FILE *out, const char *name, double value, ...)
{
	char before = '{';
	const char *label;
	va_list args;

	fputs(name, out);
	va_start(args, value);
	while ((label = va_arg(args, const char *)) != NULL) {
		fputc(before, out);
		write_label(out, label, va_arg(args, const char *));
		before = ',';
	}
	va_end(args);
	if (before == ',')
		fputc('}', out);
	write_number(out, value);
}

void hr_metric_single(FILE *out, const char *name, enum hr_metric_type type, const char *help,
		      double value)
{
	hr_metric(out, name, type, help);
	hr_metric_value(out, name, value, NULL);
}

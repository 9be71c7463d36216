/* SPDX-License-Identifier: Apache-2.0 */
#include "net/metrics.h"

#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "common/text.h"

#define EXACT_MOST 9007199254740992.0 /* 2^53: a double represents all integers up to this number */

void hr_metric(FILE *out, const char *name, enum hr_metric_type type, const char *help)
{
	static const char *const types[] = {"counter", "gauge", "histogram"};

	fprintf(out, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, types[type]);
}

/* Writes a label in valid UTF-8. Otherwise, a Prometheus server would reject the whole text. */
static void write_label(FILE *out, const char *name, const char *value)
{
	size_t n = strlen(value), room = 4 * n + 1;
	char *clean = malloc(room);

	fprintf(out, "%s=\"", name);
	if (clean)
		hr_text_escape(clean, room, value, n);
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

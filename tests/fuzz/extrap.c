/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Measurements in Extra-P's text format or as JSON lines. What was read is written in both formats,
 * and must read back as the same number of series and points.
 */
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "model/extrap_file.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);

static size_t points_count(const struct hr_measurements *m)
{
	size_t n = 0;

	for (size_t i = 0; i < m->n; i++)
		n += m->series[i].n;
	return n;
}

/* Writes and reads a format. The text format joins words, and may so join names: only JSON lines
 * must have the same series. */
static void round_trip(const struct hr_measurements *m, enum hr_extrap_format format)
{
	struct hr_measurements again = {0};
	char *text = NULL, *error;
	size_t n;
	FILE *out = open_memstream(&text, &n);
	int r;

	if (out == NULL)
		abort();
	r = hr_extrap_write(out, format, m, &error);
	if (fclose(out) != 0 || (r < 0 && r != -EINVAL))
		abort();
	free(error);
	error = NULL;
	if (r == 0 && hr_extrap_read(text, n, &again, &error) < 0 && format == HR_EXTRAP_JSONL)
		abort();
	if (r == 0 && format == HR_EXTRAP_JSONL &&
	    (again.n != m->n || points_count(&again) != points_count(m)))
		abort();
	free(error);
	free(text);
	hr_measurements_done(&again);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
	struct hr_measurements m = {0};
	char *error = NULL;

	if (hr_extrap_read((const char *)data, bytes, &m, &error) == 0) {
		round_trip(&m, HR_EXTRAP_TEXT);
		round_trip(&m, HR_EXTRAP_JSONL);
	}
	free(error);
	hr_measurements_done(&m);
	return 0;
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * points.h - measurements: values of a metric in a region, at points of up to three parameters
 *
 *      parameters  ranks, workers
 *      series      "train->next" "read_s"      one for each region and metric
 *        point     ranks 4, workers 2          its values are repetitions
 *
 * A region is what Extra-P calls a call path: names with "->" between them.
 *
 * Owner     The measurements own their texts and arrays; hr_measurements_done frees them.
 * Threads   One at a time.
 */
#ifndef HEADRACE_MODEL_POINTS_H
#define HEADRACE_MODEL_POINTS_H

#include <stdbool.h>
#include <stddef.h>

#include "common/map64.h"

#define HR_MODEL_PARAMETERS  3u
#define HR_MODEL_POINTS_MOST 1000u   /* of a series */
#define HR_MODEL_VALUES_MOST 1000u   /* of a point */
#define HR_MODEL_SERIES_MOST 100000u /* of measurements */

struct hr_point {
	double at[HR_MODEL_PARAMETERS]; /* in the order of the parameters; not negative */
	double *values;
	size_t n, room;
};

struct hr_series {
	char *region, *metric; /* unescaped */
	struct hr_point *points;
	size_t n, room;
	size_t last; /* the point that got the last value */
};

struct hr_measurements {
	char *parameters[HR_MODEL_PARAMETERS]; /* unescaped */
	unsigned n_parameters;
	struct hr_series *series; /* in the order of their first values */
	size_t n, room;
	struct hr_map64 index; /* a hash of region and metric to the series */
};

/*
 * Returns the index of the parameter with this name of `n` bytes. If there is none, adds it if
 * `add` is true. Returns -ENOENT; -ENOSPC: there are HR_MODEL_PARAMETERS already; -ENOMEM.
 */
int hr_measurements_parameter(struct hr_measurements *m, const char *name, size_t n, bool add);

/*
 * Adds a value at a point. Parameters and values must be finite, and parameters must not be
 * negative. Returns 0; -ENOMEM; -ENOSPC: one of the limits above; -EDOM: a number is not allowed.
 */
int hr_measurements_add(struct hr_measurements *m, const char *region, const char *metric,
			const double at[HR_MODEL_PARAMETERS], double value);

/* Returns the point of a series that has these values of the parameters; NULL: none. */
struct hr_point *hr_series_point(struct hr_series *s, const double at[HR_MODEL_PARAMETERS]);

/* Frees what a series contains. */
void hr_series_done(struct hr_series *s);

/* Frees what the measurements contain. */
void hr_measurements_done(struct hr_measurements *m);

#endif

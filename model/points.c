/* SPDX-License-Identifier: Apache-2.0 */
#include "model/points.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/array.h"
#include "common/fnv.h"

int hr_measurements_parameter(struct hr_measurements *m, const char *name, size_t n, bool add)
{
	for (unsigned i = 0; i < m->n_parameters; i++)
		if (strlen(m->parameters[i]) == n && memcmp(m->parameters[i], name, n) == 0)
			return (int)i;
	if (!add)
		return -ENOENT;
	if (m->n_parameters == HR_MODEL_PARAMETERS)
		return -ENOSPC;
	m->parameters[m->n_parameters] = strndup(name, n);
	if (m->parameters[m->n_parameters] == NULL)
		return -ENOMEM;
	return (int)m->n_parameters++;
}

/* Returns the key under which the index has the series, or may get it. *ret: NULL if it has not. */
static uint64_t series_find(const struct hr_measurements *m, const char *region, const char *metric,
			    struct hr_series **ret)
{
	uint64_t key =
	    hr_fnv(hr_fnv(HR_FNV_BASIS, region, strlen(region) + 1), metric, strlen(metric));

	for (;; key++) {
		uint32_t i = hr_map64_get(&m->index, key);

		*ret = i == HR_MAP64_NONE ? NULL : &m->series[i];
		if (*ret == NULL ||
		    (strcmp((*ret)->region, region) == 0 && strcmp((*ret)->metric, metric) == 0))
			return key;
	}
}

static int series_add(struct hr_measurements *m, uint64_t key, const char *region,
		      const char *metric, struct hr_series **ret)
{
	struct hr_series s = {0};

	if (m->n == HR_MODEL_SERIES_MOST)
		return -ENOSPC;
	if (!hr_array_reserve(m->series, m->n, m->room) ||
	    hr_map64_set(&m->index, key, (uint32_t)m->n) < 0)
		return -ENOMEM;
	s.region = strdup(region);
	s.metric = strdup(metric);
	m->series[m->n++] = s; /* also if a text is NULL: hr_measurements_done frees the other */
	*ret = &m->series[m->n - 1];
	return s.region != NULL && s.metric != NULL ? 0 : -ENOMEM;
}

static bool is_at(const struct hr_point *p, const double *at)
{
	for (unsigned i = 0; i < HR_MODEL_PARAMETERS; i++)
		if (p->at[i] != at[i])
			return false;
	return true;
}

/* Begins at the last point, because files have points in the same order for each series. */
struct hr_point *hr_series_point(struct hr_series *s, const double at[HR_MODEL_PARAMETERS])
{
	for (size_t i = 0; i < s->n; i++) {
		size_t k = (s->last + i) % s->n;

		if (!is_at(&s->points[k], at))
			continue;
		s->last = k;
		return &s->points[k];
	}
	return NULL;
}

static int point_add(struct hr_series *s, const double *at, struct hr_point **ret)
{
	if (s->n == HR_MODEL_POINTS_MOST)
		return -ENOSPC;
	if (!hr_array_reserve(s->points, s->n, s->room))
		return -ENOMEM;
	s->points[s->n] = (struct hr_point){0};
	memcpy(s->points[s->n].at, at, sizeof(s->points[s->n].at));
	s->last = s->n;
	*ret = &s->points[s->n++];
	return 0;
}

int hr_measurements_add(struct hr_measurements *m, const char *region, const char *metric,
			const double at[HR_MODEL_PARAMETERS], double value)
{
	double place[HR_MODEL_PARAMETERS] = {0};
	struct hr_series *s;
	struct hr_point *p;
	uint64_t key;
	int r = 0;

	for (unsigned i = 0; i < m->n_parameters; i++) {
		if (!isfinite(at[i]) || at[i] < 0)
			return -EDOM;
		place[i] = at[i];
	}
	if (!isfinite(value))
		return -EDOM;
	key = series_find(m, region, metric, &s);
	if (s == NULL)
		r = series_add(m, key, region, metric, &s);
	if (r < 0)
		return r;
	p = hr_series_point(s, place);
	if (p == NULL)
		r = point_add(s, place, &p);
	if (r < 0)
		return r;
	if (p->n == HR_MODEL_VALUES_MOST)
		return -ENOSPC;
	if (!hr_array_reserve(p->values, p->n, p->room))
		return -ENOMEM;
	p->values[p->n++] = value;
	return 0;
}

void hr_series_done(struct hr_series *s)
{
	for (size_t i = 0; i < s->n; i++)
		free(s->points[i].values);
	free(s->points);
	free(s->region);
	free(s->metric);
}

void hr_measurements_done(struct hr_measurements *m)
{
	for (size_t i = 0; i < m->n; i++)
		hr_series_done(&m->series[i]);
	free(m->series);
	for (unsigned i = 0; i < m->n_parameters; i++)
		free(m->parameters[i]);
	hr_map64_done(&m->index);
	*m = (struct hr_measurements){0};
}

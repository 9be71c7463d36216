/* SPDX-License-Identifier: Apache-2.0 */
#include "compare/noise.h"

#include <math.h>
#include <stddef.h>

#define USUAL_OF_QUANTITY 0.03
#define USUAL_OF_WHOLE	  0.005
#define USUAL_SECONDS	  0.03 /* starting and ending processes */
#define USUAL_FREEDOM	  3

/* Quantiles of Student's t, for interpolation in 1 / degrees of freedom. */
static const struct {
	double freedom, t[2]; /* 0.995 and 0.9995 */
} student[] = {{1, {63.657, 636.62}}, {2, {9.925, 31.599}}, {3, {5.841, 12.924}},
	       {4, {4.604, 8.610}},   {5, {4.032, 6.869}},  {6, {3.707, 5.959}},
	       {8, {3.355, 5.041}},   {10, {3.169, 4.587}}, {15, {2.947, 4.073}},
	       {20, {2.845, 3.850}},  {30, {2.750, 3.646}}, {60, {2.660, 3.460}},
	       {1e9, {2.576, 3.291}}};

static double student_t(double freedom, bool many)
{
	size_t i = 1;
	double from, to, at;

	if (!(freedom > 1))
		return student[0].t[many];
	while (i + 1 < sizeof(student) / sizeof(*student) && student[i].freedom < freedom)
		i++;
	from = 1 / student[i - 1].freedom;
	to = 1 / student[i].freedom;
	at = (1 / freedom - from) / (to - from);
	return student[i - 1].t[many] + at * (student[i].t[many] - student[i - 1].t[many]);
}

/* The variance of a run, with what is usual. */
static double moderated(const struct hr_compare_sample *s, double whole)
{
	double usual = pow(USUAL_OF_QUANTITY * s->mean, 2) + pow(USUAL_OF_WHOLE * whole, 2) +
		       pow(USUAL_SECONDS, 2);

	return (USUAL_FREEDOM * usual + s->freedom * s->variance) / (USUAL_FREEDOM + s->freedom);
}

double hr_noise(const struct hr_compare_sample *a, const struct hr_compare_sample *b, double whole,
		bool many)
{
	double va = moderated(a, whole) / a->n, vb = moderated(b, whole) / b->n;
	double sum = va + vb;

	if (!(sum > 0))
		return 0;
	return sqrt(sum) * student_t(sum * sum /
					 (va * va / (USUAL_FREEDOM + a->freedom) +
					  vb * vb / (USUAL_FREEDOM + b->freedom)),
				     many);
}

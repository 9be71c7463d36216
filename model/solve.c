/* SPDX-License-Identifier: Apache-2.0 */
/* One-sided Jacobi: rotates pairs of columns until all are orthogonal. Their norms are then the
 * singular values. */
#include "model/solve.h"

#include <float.h>
#include <math.h>
#include <string.h>

#define SWEEPS_MOST 60

static double product_sum(const double *a, const double *b, size_t n)
{
	double sum = 0;

	for (size_t i = 0; i < n; i++)
		sum += a[i] * b[i];
	return sum;
}

static void pair_turn(double *a, double *b, size_t n, double cosine, double sine)
{
	for (size_t i = 0; i < n; i++) {
		double old = a[i];

		a[i] = cosine * old - sine * b[i];
		b[i] = sine * old + cosine * b[i];
	}
}

/* Makes two columns orthogonal. Returns whether they were not. */
static bool pair_rotate(double *a, double *b, size_t rows, double *va, double *vb, unsigned n)
{
	double aa = product_sum(a, a, rows), bb = product_sum(b, b, rows);
	double ab = product_sum(a, b, rows), zeta, tangent, cosine;

	if (!(fabs(ab) > DBL_EPSILON * sqrt(aa) * sqrt(bb)))
		return false;
	zeta = (bb - aa) / (2 * ab);
	tangent = copysign(1, zeta) / (fabs(zeta) + hypot(1, zeta));
	cosine = 1 / hypot(1, tangent);
	pair_turn(a, b, rows, cosine, cosine * tangent);
	pair_turn(va, vb, n, cosine, cosine * tangent);
	return true;
}

/* Rotates all columns. `v` becomes the product of the rotations. */
static void columns_rotate(double *a, size_t rows, unsigned n,
			   double v[HR_SOLVE_COLUMNS][HR_SOLVE_COLUMNS])
{
	bool rotated = true;

	for (unsigned i = 0; i < n; i++)
		for (unsigned k = 0; k < n; k++)
			v[i][k] = i == k;
	for (unsigned sweep = 0; rotated && sweep < SWEEPS_MOST; sweep++) {
		rotated = false;
		for (unsigned i = 0; i < n; i++)
			for (unsigned k = i + 1; k < n; k++)
				rotated |=
				    pair_rotate(a + i * rows, a + k * rows, rows, v[i], v[k], n);
	}
}

bool hr_solve(double *a, const double *b, size_t rows, unsigned n, double tolerance,
	      struct hr_solution *ret)
{
	struct hr_solution s = {.n = n};
	double norms[HR_SOLVE_COLUMNS], most = 0;
	double v[HR_SOLVE_COLUMNS][HR_SOLVE_COLUMNS];

	columns_rotate(a, rows, n, v);
	for (unsigned i = 0; i < n; i++) {
		norms[i] = sqrt(product_sum(a + i * rows, a + i * rows, rows));
		if (!isfinite(norms[i]))
			return false;
		most = fmax(most, norms[i]);
	}
	for (unsigned i = 0; i < n; i++) {
		double share;

		if (norms[i] <= tolerance * most)
			continue;
		share = product_sum(a + i * rows, b, rows) / norms[i] / norms[i];
		for (unsigned k = 0; k < n; k++)
			s.x[k] += share * v[i][k];
		s.singular[s.rank] = norms[i];
		memcpy(s.v[s.rank++], v[i], sizeof(v[i]));
	}
	for (unsigned k = 0; k < n; k++)
		if (!isfinite(s.x[k]))
			return false;
	*ret = s;
	return true;
}

double hr_solution_variance(const struct hr_solution *s, const double *row)
{
	double sum = 0;

	for (unsigned i = 0; i < s->rank; i++) {
		double part = product_sum(s->v[i], row, s->n) / s->singular[i];

		sum += part * part;
	}
	return sum;
}

double hr_solution_log_determinant(const struct hr_solution *s)
{
	double sum = 0;

	for (unsigned i = 0; i < s->rank; i++)
		sum += 2 * log(s->singular[i]);
	return sum;
}

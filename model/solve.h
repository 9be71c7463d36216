/* SPDX-License-Identifier: Apache-2.0 */
/*
 * solve.h - linear least squares with up to four unknowns, by the singular values of the matrix
 *
 * If the columns depend on each other, the solution is the one of minimum norm, as of numpy's
 * lstsq. Pure functions.
 */
#ifndef HEADRACE_MODEL_SOLVE_H
#define HEADRACE_MODEL_SOLVE_H

#include <stdbool.h>
#include <stddef.h>

#define HR_SOLVE_COLUMNS 4u

struct hr_solution {
	unsigned n;    /* unknowns */
	unsigned rank; /* singular values that are not zero */
	double x[HR_SOLVE_COLUMNS];
	double singular[HR_SOLVE_COLUMNS];	      /* of the first `rank` */
	double v[HR_SOLVE_COLUMNS][HR_SOLVE_COLUMNS]; /* [i]: right singular vector i */
};

/*
 * Solves a x = b for `rows` rows of `n` columns. Column k of the matrix is a[k * rows] and what
 * follows; the function overwrites `a`. Singular values of at most `tolerance` times the largest
 * one count as zero. False: a number is not finite.
 */
bool hr_solve(double *a, const double *b, size_t rows, unsigned n, double tolerance,
	      struct hr_solution *ret);

/* Returns row' (A'A)^-1 row: the variance of a prediction for one of the values. */
double hr_solution_variance(const struct hr_solution *s, const double *row);

/* Returns the logarithm of the determinant of A'A. */
double hr_solution_log_determinant(const struct hr_solution *s);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* model/search.h: what the search finds. test_extrap.py compares many more models with Extra-P. */
#include <errno.h>
#include <math.h>
#include <string.h>

#include "model/scaling.h"
#include "model/search.h"
#include "model/solve.h"
#include "tests/model/series.h"

static const double points[] = {2, 4, 8, 16, 32};
static const char *const names[] = {"ranks", "workers", "batch"};

static double root(double x, void *arg)
{
	return 5 + 0.25 * sqrt(x);
}

static double constant(double x, void *arg)
{
	return 7;
}

static double inverse(double x, void *arg)
{
	return 1 + 64 / x;
}

static double noise(double x, void *arg)
{
	return 11 + (int)x % 3; /* 13, 12, 13, 12, 13 at `points` */
}

static void assert_formula(const struct hr_measurements *m, unsigned parameters,
			   enum hr_space space, const char *want)
{
	struct hr_model_samples samples = series_samples(m, parameters);
	struct hr_model model;
	char text[256];

	assert_int_equal(hr_search(&samples, space, &model), 0);
	hr_function_text(&model.function, names, 4, text, sizeof(text));
	assert_string_equal(text, want);
	hr_model_samples_done(&samples);
}

static void assert_one(const double *at, size_t n, double (*function)(double, void *),
		       enum hr_space space, const char *want)
{
	struct hr_measurements m = {0};

	series_add(&m, at, n, 2, function, NULL);
	assert_formula(&m, 1, space, want);
	hr_measurements_done(&m);
}

static void test_one_parameter(void **state)
{
	assert_one(points, 5, root, HR_SPACE_DEFAULT, "5 + 0.25 x ranks^(1/2)");
	assert_one(points, 5, root, HR_SPACE_NO_LOGS, "5 + 0.25 x ranks^(1/2)");
	assert_one(points, 5, constant, HR_SPACE_DEFAULT, "7");
	assert_one(points, 5, inverse, HR_SPACE_NEGATIVE, "1 + 64 x ranks^(-1)");
	/* a term fits noise better than a constant, but predicts a point left out worse */
	assert_one(points, 5, noise, HR_SPACE_DEFAULT, "12.6");
}

/* A model along the second parameter has its values, at one value of the first one. */
static void test_the_axis_is_another_parameter(void **state)
{
	struct hr_axes axes = {.n = 1, .parameters = {1}};
	struct hr_measurements m = {0};
	struct hr_model_samples samples;

	assert_int_equal(hr_measurements_parameter(&m, "ranks", 5, true), 0);
	assert_int_equal(hr_measurements_parameter(&m, "workers", 7, true), 1);
	for (size_t i = 0; i < 5; i++)
		for (int ranks = 100; ranks <= 200; ranks += 100)
			assert_int_equal(
			    hr_measurements_add(&m, "train", "read_s",
						(double[HR_MODEL_PARAMETERS]){ranks, points[i]},
						ranks + points[i]),
			    0);
	assert_int_equal(hr_model_samples_take(&m.series[0], &m, &axes, &samples), 0);
	assert_true(axes.fixed[0]);
	assert_int_equal(samples.n, 5);
	for (size_t i = 0; i < 5; i++) {
		assert_true(samples.list[i].x[0] == points[i]);
		assert_true(samples.list[i].mean == axes.values[0] + points[i]);
	}
	hr_model_samples_done(&samples);
	hr_measurements_done(&m);
}

static double half_log(double x, void *arg)
{
	return 3 + log2(x);
}

/* A point below 1 rules out logarithms, also where one would fit exactly. */
static void test_points_below_one(void **state)
{
	static const double low[] = {0.5, 1, 2, 4, 8};
	struct hr_measurements m = {0};
	struct hr_model_samples samples;
	struct hr_model model;

	assert_one(points, 5, half_log, HR_SPACE_DEFAULT, "3 + 1 x log2(ranks)");
	series_add(&m, low, 5, 1, half_log, NULL);
	samples = series_samples(&m, 1);
	assert_int_equal(hr_search(&samples, HR_SPACE_DEFAULT, &model), 0);
	assert_int_equal(model.function.form.terms[0].log, 0);
	hr_model_samples_done(&samples);
	hr_measurements_done(&m);
}

static void test_spaces(void **state)
{
	struct hr_term terms[HR_TERMS_MOST];

	assert_int_equal(hr_space_terms(HR_SPACE_DEFAULT, terms), 42);
	assert_int_equal(hr_space_terms(HR_SPACE_NO_LOGS, terms), 19);
	assert_int_equal(hr_space_terms(HR_SPACE_NEGATIVE, terms), 84);
	assert_int_equal(terms[83].numerator, -3);
}

/* Adds a value for each point of a grid with two parameters. */
static void grid_add(struct hr_measurements *m, double (*function)(double x, double y))
{
	assert_int_equal(hr_measurements_parameter(m, "ranks", 5, true), 0);
	assert_int_equal(hr_measurements_parameter(m, "workers", 7, true), 1);
	for (size_t i = 0; i < 5; i++)
		for (size_t k = 0; k < 5; k++) {
			double at[HR_MODEL_PARAMETERS] = {points[i], points[k]};

			assert_int_equal(hr_measurements_add(m, "train", "read_s", at,
							     function(points[i], points[k])),
					 0);
		}
}

static double product(double x, double y)
{
	return 1 + 0.5 * x * sqrt(y);
}

static double sum(double x, double y)
{
	return 1 + 0.5 * x + 3 * sqrt(y);
}

static double first_only(double x, double y)
{
	return 2 + 3 * x;
}

static void test_two_parameters(void **state)
{
	static double (*const functions[])(double, double) = {product, sum, first_only};
	static const char *const want[] = {"1 + 0.5 x ranks x workers^(1/2)",
					   "1 + 0.5 x ranks + 3 x workers^(1/2)", "2 + 3 x ranks"};

	for (size_t i = 0; i < 3; i++) {
		struct hr_measurements m = {0};

		grid_add(&m, functions[i]);
		assert_formula(&m, 2, HR_SPACE_DEFAULT, want[i]);
		hr_measurements_done(&m);
	}
}

/* A parameter that is no axis is fixed at the value that most points have. */
static void test_axes(void **state)
{
	struct hr_axes axes = {.n = 1, .parameters = {0}};
	double more[HR_MODEL_PARAMETERS] = {64, 8}, values[10];
	struct hr_measurements m = {0};
	struct hr_model_samples samples;
	size_t n = 10;

	grid_add(&m, sum);
	assert_int_equal(hr_measurements_add(&m, "train", "read_s", more, 1), 0);
	assert_int_equal(hr_model_samples_take(&m.series[0], &m, &axes, &samples), 0);
	assert_int_equal(samples.n, 6);
	assert_true(axes.fixed[1] && axes.values[1] == 8 && !axes.fixed[0]);
	assert_int_equal(hr_model_samples_count(&samples, 0, values, &n), 6);
	assert_true(n == 6 && values[0] == 2 && values[5] == 64);
	hr_model_samples_done(&samples);
	hr_measurements_done(&m);
}

static void test_measurements_refuse(void **state)
{
	double at[HR_MODEL_PARAMETERS] = {-1};
	struct hr_measurements m = {0};

	assert_int_equal(hr_measurements_parameter(&m, "a", 1, false), -ENOENT);
	assert_int_equal(hr_measurements_parameter(&m, "a", 1, true), 0);
	assert_int_equal(hr_measurements_add(&m, "r", "m", at, 1), -EDOM);
	at[0] = 1;
	assert_int_equal(hr_measurements_add(&m, "r", "m", at, NAN), -EDOM);
	for (unsigned i = 0; i < HR_MODEL_VALUES_MOST; i++)
		assert_int_equal(hr_measurements_add(&m, "r", "m", at, i), 0);
	assert_int_equal(hr_measurements_add(&m, "r", "m", at, 1), -ENOSPC);
	assert_true(hr_measurements_parameter(&m, "b", 1, true) == 1 &&
		    hr_measurements_parameter(&m, "c", 1, true) == 2);
	assert_int_equal(hr_measurements_parameter(&m, "d", 1, true), -ENOSPC);
	hr_measurements_done(&m);
}

/* The columns are equal: the solution of minimum norm divides the value between them. */
static void test_solve_rank(void **state)
{
	double a[] = {1, 1, 1, 1, 1, 1}, b[] = {4, 4, 4};
	struct hr_solution s;

	assert_true(hr_solve(a, b, 3, 2, 1e-15, &s));
	assert_int_equal(s.rank, 1);
	assert_true(fabs(s.x[0] - 2) < 1e-14 && fabs(s.x[1] - 2) < 1e-14);
}

static void test_scaling(void **state)
{
	struct hr_scaling base = hr_scaling_at(100, 2, 100, 2, 4);
	struct hr_scaling more = hr_scaling_at(60, 4, 100, 2, 4);

	assert_true(base.speedup == 0 && base.efficiency == 100 && base.cost == 800);
	assert_true(more.speedup == 40 && more.efficiency == 40 && more.cost == 960);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_one_parameter),
	    cmocka_unit_test(test_the_axis_is_another_parameter),
	    cmocka_unit_test(test_points_below_one),
	    cmocka_unit_test(test_spaces),
	    cmocka_unit_test(test_two_parameters),
	    cmocka_unit_test(test_axes),
	    cmocka_unit_test(test_measurements_refuse),
	    cmocka_unit_test(test_solve_rank),
	    cmocka_unit_test(test_scaling),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

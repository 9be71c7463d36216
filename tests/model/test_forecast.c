/* SPDX-License-Identifier: Apache-2.0 */
/* model/forecast.h: predictions, their ranges, outliers. tests/bench/model_noise.py measures more. */
#include <math.h>

#include "model/forecast.h"
#include "model/outliers.h"
#include "tests/model/series.h"

static const double points[] = {2, 4, 8, 16, 32};

/* A function with noise. The random numbers are those of a fixed seed. */
struct noisy {
	double constant, coefficient, power, noise;
	uint64_t seed;
};

static double uniform(uint64_t *seed)
{
	*seed = *seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
	return ((double)(*seed >> 11) + 0.5) / 9007199254740992.0;
}

static double normal(uint64_t *seed)
{
	double radius = sqrt(-2 * log(uniform(seed)));

	return radius * cos(2 * M_PI * uniform(seed));
}

static double truth(const struct noisy *f, double x)
{
	return f->constant + f->coefficient * pow(x, f->power);
}

static double noisy_value(double x, void *arg)
{
	struct noisy *f = arg;

	return truth(f, x) * (1 + f->noise * normal(&f->seed));
}

static struct hr_forecast forecast_at(const struct hr_measurements *m, unsigned parameters,
				      const double *x)
{
	struct hr_model_samples samples = series_samples(m, parameters);
	struct hr_forecast forecast;

	assert_int_equal(hr_forecast_init(&samples, HR_SPACE_DEFAULT, x, &forecast), 0);
	hr_model_samples_done(&samples);
	return forecast;
}

static struct hr_forecast forecast_of(struct noisy *f, unsigned repetitions, double x)
{
	struct hr_measurements m = {0};
	struct hr_forecast forecast;

	series_add(&m, points, 5, repetitions, noisy_value, f);
	forecast = forecast_at(&m, 1, &x);
	hr_measurements_done(&m);
	return forecast;
}

/* Without noise, the prediction is that of the formula, and the range has no width. */
static void test_without_noise(void **state)
{
	struct noisy f = {5, 0.25, 0.5, 0, 1};
	double want = truth(&f, 128);
	struct hr_forecast forecast;

	for (unsigned repetitions = 1; repetitions <= 3; repetitions++) {
		forecast = forecast_of(&f, repetitions, 128);
		assert_true(fabs(forecast.value - want) < 1e-6 * want);
		assert_true(forecast.high - forecast.low < 1e-6 * want);
		assert_true(forecast.candidates[0].probability > 0.999);
		assert_int_equal(forecast.n_equal, 1);
		assert_false(forecast.misfit);
		hr_forecast_done(&forecast);
	}
}

static void test_range_holds_truth(void **state)
{
	static const double powers[] = {0.25, 0.5, 1, 1.5, 2};
	uint64_t seed = 7;
	unsigned held = 0, sets = 0;

	for (unsigned i = 0; i < 150; i++) {
		struct noisy f = {
		    .power = powers[i % 5], .noise = i % 3 ? 0.03 : 0.1, .seed = seed};
		double share = 0.1 + 0.8 * uniform(&seed);
		struct hr_forecast forecast;

		f.constant = 1 + 9 * uniform(&seed);
		f.coefficient = f.constant * share / (1 - share) / pow(32, f.power);
		f.seed = seed;
		forecast = forecast_of(&f, 3 + i % 3, 128);
		seed = f.seed;
		assert_true(forecast.low <= forecast.value && forecast.value <= forecast.high);
		held += forecast.low <= truth(&f, 128) && truth(&f, 128) <= forecast.high;
		sets++;
		hr_forecast_done(&forecast);
	}
	assert_in_range(held, sets * 85 / 100, sets * 97 / 100);
}

/* With much noise, several forms fit, and the range is wide. */
static void test_forms_that_fit(void **state)
{
	struct noisy f = {5, 0.25, 0.5, 0.1, 3};
	struct hr_forecast forecast = forecast_of(&f, 3, 128);
	double sum = 0;

	assert_true(forecast.n_equal > 1 && forecast.n_equal <= forecast.n);
	assert_true(forecast.noise > 0.05 && forecast.noise < 0.2);
	for (size_t i = 0; i < forecast.n; i++) {
		assert_true(i == 0 || forecast.candidates[i].probability <=
					  forecast.candidates[i - 1].probability);
		sum += forecast.candidates[i].probability;
	}
	assert_true(sum > 0.95 && sum < 1 + 1e-9);
	hr_forecast_done(&forecast);
}

static double jagged(double x, void *arg)
{
	double *n = arg;

	return (x == 8 ? 20 : 10 + x) * (1 + 0.001 * ((int)(*n)++ % 3 - 1));
}

/* Points that no form describes, with precise repetitions: the range comes from the misfit. */
static void test_misfit(void **state)
{
	struct hr_measurements m = {0};
	struct hr_forecast forecast;
	double n = 0, at = 128;

	series_add(&m, points, 5, 3, jagged, &n);
	forecast = forecast_at(&m, 1, &at);
	assert_true(forecast.misfit);
	assert_true(forecast.high - forecast.low > 0.2 * forecast.value);
	hr_forecast_done(&forecast);
	hr_measurements_done(&m);
}

static void test_outliers(void **state)
{
	struct noisy f = {5, 0.25, 1, 0.01, 5};
	double at[HR_MODEL_PARAMETERS] = {16}, x = 128;
	struct hr_measurements m = {0};
	struct hr_forecast forecast;
	struct hr_model_samples samples;
	unsigned found = 0;
	double limit;

	series_add(&m, points, 5, 3, noisy_value, &f);
	assert_int_equal(hr_measurements_add(&m, "train", "read_s", at, 3 * truth(&f, 16)), 0);
	samples = series_samples(&m, 1);
	limit = hr_outliers_limit(&samples);
	for (size_t i = 0; i < samples.n; i++)
		for (size_t k = 0; k < samples.list[i].n; k++)
			found += hr_outlier_is(&samples.list[i],
					       hr_model_sample_median(&samples.list[i]),
					       samples.list[i].values[k], limit);
	assert_int_equal(found, 1);
	hr_model_samples_done(&samples);
	forecast = forecast_at(&m, 1, &x); /* as if the outlier was not there */
	assert_true(forecast.low <= truth(&f, 128) && truth(&f, 128) <= forecast.high);
	assert_true(forecast.noise < 0.03);
	hr_forecast_done(&forecast);
	hr_measurements_done(&m);
}

/* A repetition far below the median is an outlier, as one above it is. */
static void test_outliers_of_both_sides(void **state)
{
	static const double values[] = {9.9, 10, 10.1, 10, 2};
	struct hr_model_sample s = {.values = values, .n = 5};
	double median = hr_model_sample_median(&s);

	assert_true(median == 10);
	assert_true(hr_outlier_is(&s, median, 2, 0.5));
	assert_true(hr_outlier_is(&s, median, 18, 0.5));
	assert_false(hr_outlier_is(&s, median, 9, 0.5));
	assert_false(hr_outlier_is(&s, median, 11, 0.5));
}

static double rising(double x, void *arg)
{
	return x - 10;
}

static void test_both_signs(void **state)
{
	struct hr_measurements m = {0};
	struct hr_forecast forecast;
	double at = 128;

	series_add(&m, points, 5, 2, rising, NULL);
	forecast = forecast_at(&m, 1, &at);
	assert_true(fabs(forecast.value - 118) < 1e-3);
	hr_forecast_done(&forecast);
	hr_measurements_done(&m);
}

static void test_two_parameters(void **state)
{
	const double at[HR_MODEL_PARAMETERS] = {128, 128};
	struct hr_measurements m = {0};
	struct hr_forecast forecast;
	double want = 3 + 0.5 * 128 * sqrt(128);
	uint64_t seed = 11;

	assert_int_equal(hr_measurements_parameter(&m, "ranks", 5, true), 0);
	assert_int_equal(hr_measurements_parameter(&m, "workers", 7, true), 1);
	for (unsigned i = 0; i < 75; i++) {
		double x[HR_MODEL_PARAMETERS] = {points[i % 5], points[i / 5 % 5]};
		double value = (3 + 0.5 * x[0] * sqrt(x[1])) * (1 + 0.01 * normal(&seed));

		assert_int_equal(hr_measurements_add(&m, "train", "read_s", x, value), 0);
	}
	forecast = forecast_at(&m, 2, at);
	assert_true(fabs(forecast.value - want) < 0.01 * want);
	assert_true(forecast.high - forecast.low < 0.05 * want);
	assert_int_equal(forecast.candidates[0].function.form.products[0], 3); /* of both */
	hr_forecast_done(&forecast);
	hr_measurements_done(&m);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_without_noise),  cmocka_unit_test(test_range_holds_truth),
	    cmocka_unit_test(test_forms_that_fit), cmocka_unit_test(test_misfit),
	    cmocka_unit_test(test_outliers),	   cmocka_unit_test(test_both_signs),
	    cmocka_unit_test(test_two_parameters), cmocka_unit_test(test_outliers_of_both_sides),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * generate_random.h - chance that is the same everywhere: numbers and durations of generated jobs
 *
 * Owner     Embedded in a generator; one thread.
 */
#ifndef HEADRACE_TESTS_BENCH_GENERATE_RANDOM_H
#define HEADRACE_TESTS_BENCH_GENERATE_RANDOM_H

#include <math.h>
#include <stdint.h>

#define HR_GEN_NOISE 65536u

struct hr_gen_random {
	uint64_t state;
	float noise[HR_GEN_NOISE]; /* lognormal with sigma 0.35 */
};

static inline uint64_t hr_gen_mix(uint64_t x)
{
	x = (x ^ x >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
	x = (x ^ x >> 27) * UINT64_C(0x94d049bb133111eb);
	return x ^ x >> 31;
}

static inline uint64_t hr_gen_random(struct hr_gen_random *r)
{
	return hr_gen_mix(r->state += UINT64_C(0x9e3779b97f4a7c15));
}

static inline double hr_gen_uniform(struct hr_gen_random *r)
{
	return ((double)(hr_gen_random(r) >> 11) + 0.5) * 0x1p-53;
}

/* A duration about a median, never 0. */
static inline uint64_t hr_gen_noisy(struct hr_gen_random *r, double median)
{
	return (uint64_t)(median * (double)r->noise[hr_gen_random(r) % HR_GEN_NOISE]) + 1;
}

static inline void hr_gen_random_init(struct hr_gen_random *r, uint64_t seed)
{
	r->state = hr_gen_mix(seed);
	for (unsigned i = 0; i < HR_GEN_NOISE; i++) {
		double normal =
		    sqrt(-2 * log(hr_gen_uniform(r))) * cos(2 * M_PI * hr_gen_uniform(r));

		r->noise[i] = (float)exp(0.35 * normal);
	}
}

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * forecast_internal.h - what the two methods of a forecast share
 *
 * forecast_shares.c   one parameter, values of one sign: integrates over the share that the term
 *                     has of the value, which is probably between 0 and 1
 * forecast_linear.c   everything else: the coefficients are normally distributed
 *
 * Both turn samples, as evidence, into a mixture of nodes: a possible value at the point, with its
 * weight and its uncertainty.
 *
 * One thread.
 */
#ifndef HEADRACE_MODEL_FORECAST_INTERNAL_H
#define HEADRACE_MODEL_FORECAST_INTERNAL_H

#include "model/forecast.h"

#define HR_PRIOR_CONSTANT 0.1  /* probability of a constant, before the data */
#define HR_PRIOR_NEGATIVE 0.02 /* factor for a coefficient with another sign than the values */

/* Noise is relative: the weight of a mean is its number of repetitions over its square. */
struct hr__evidence {
	size_t n; /* points */
	double (*x)[HR_MODEL_PARAMETERS];
	double *mean, *weight;
	double within;	 /* relative squared differences of repetitions to their mean */
	double n_values; /* number of values that count */
	double scale;	 /* mean of the absolute means */
	double noise;
	bool logs[HR_MODEL_PARAMETERS]; /* the space may have logarithms of this parameter */
	bool one_sign, misfit;
};

struct hr__node {
	double weight; /* first its logarithm, up to a constant */
	double value, scale;
	size_t candidate;
};

struct hr__mixture {
	struct hr__node *nodes;
	size_t n, room;
	struct hr_candidate *candidates;
	size_t n_candidates, candidates_room;
};

/* Returns 0 or -ENOMEM. hr__evidence_done frees it. */
int hr__evidence_init(const struct hr_model_samples *s, enum hr_space space,
		      struct hr__evidence *ret);
void hr__evidence_done(struct hr__evidence *e);

/*
 * Compares the best form's squared differences to the means with the noise of repetitions. If they
 * are ten times what the noise explains, sets `misfit`, and the repetitions do not count.
 */
void hr__evidence_check(struct hr__evidence *e, double between, unsigned unknowns);

/* Logarithm of the probability of a term before the data: small and simple exponents are likely. */
double hr__term_prior(struct hr_term term);

/* Adds nodes and candidates for all forms. Both return 0 or -ENOMEM. */
int hr__shares_add(struct hr__evidence *e, enum hr_space space, double x, struct hr__mixture *to);
int hr__linear_add(struct hr__evidence *e, const struct hr_model_samples *s, enum hr_space space,
		   const double *x, struct hr__mixture *to);

int hr__mixture_node(struct hr__mixture *m, double log_weight, double value, double scale);

/* Adds a candidate, to which the nodes belong that follow. */
int hr__mixture_candidate(struct hr__mixture *m, const struct hr_function *f, const double *x);

#endif

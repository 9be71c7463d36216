/* SPDX-License-Identifier: Apache-2.0 */
/*
 * search.h - finds the function that describes samples best, as Extra-P's default modeler does
 *
 * The value of a point is the mean of its repetitions. With one parameter, each term of the space
 * makes the form c0 + c1 * term. The one with the smallest error at left-out points wins (SMAPE, by
 * leave-one-out cross validation), unless a constant is better. With several parameters, the best
 * term of each parameter is found along its longest lines, and the best sum of products of these
 * terms wins.
 *
 * Pure functions.
 */
#ifndef HEADRACE_MODEL_SEARCH_H
#define HEADRACE_MODEL_SEARCH_H

#include "model/samples.h"
#include "model/terms.h"

struct hr_model {
	struct hr_function function;
	double smape;	    /* symmetric mean absolute percentage error, in % */
	double rss;	    /* sum of the squared errors */
	double adjusted_r2; /* 1 for a constant, as in Extra-P */
};

/* Finds the model of samples with one to three parameters. Returns 0 or -ENOMEM. */
int hr_search(const struct hr_model_samples *s, enum hr_space space, struct hr_model *ret);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * scaling.h - speed-up, efficiency and cost of a time, as Extra-Deep defines them
 *
 * The baseline is the point with the smallest values. Pure functions.
 */
#ifndef HEADRACE_MODEL_SCALING_H
#define HEADRACE_MODEL_SCALING_H

#include "model/samples.h"

struct hr_scaling {
	double speedup;	   /* how much less time than at the baseline, in % of that; 0 there */
	double efficiency; /* speedup in % of the growth of the processes; 100 at the baseline */
	double cost;	   /* time x processes x cores; core seconds for seconds */
};

/* Returns the sample with the smallest values. `s` is not empty. */
const struct hr_model_sample *hr_scaling_baseline(const struct hr_model_samples *s);

/* `time` and `processes` at a point, and at the baseline; `cores` of each process. */
struct hr_scaling hr_scaling_at(double time, double processes, double base_time,
				double base_processes, double cores);

#endif

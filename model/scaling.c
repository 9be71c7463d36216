/* SPDX-License-Identifier: Apache-2.0 */
#include "model/scaling.h"

static bool is_before(const struct hr_model_sample *a, const struct hr_model_sample *b, unsigned n)
{
	for (unsigned i = 0; i < n; i++)
		if (a->x[i] != b->x[i])
			return a->x[i] < b->x[i];
	return false;
}

const struct hr_model_sample *hr_scaling_baseline(const struct hr_model_samples *s)
{
	const struct hr_model_sample *first = s->list;

	for (size_t i = 1; i < s->n; i++)
		if (is_before(&s->list[i], first, s->n_parameters))
			first = &s->list[i];
	return first;
}

struct hr_scaling hr_scaling_at(double time, double processes, double base_time,
				double base_processes, double cores)
{
	struct hr_scaling s = {.efficiency = 100, .cost = time * processes * cores};
	double growth =
	    base_processes > 0 ? 100 * (processes - base_processes) / base_processes : 0;

	if (base_time != 0)
		s.speedup = 100 * (base_time - time) / base_time;
	if (processes == base_processes)
		return s;
	s.efficiency = growth != 0 ? 100 * s.speedup / growth : 0;
	return s;
}

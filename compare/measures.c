/* SPDX-License-Identifier: Apache-2.0 */
#include "compare/measures.h"

#include <string.h>

double hr_compare_run_sum(const struct hr_compare_run *run, const char *measure, const char *name)
{
	double sum = 0;

	for (size_t i = 0; i < run->n; i++) {
		const struct hr_measure *m = &run->list[i];

		if (strcmp(m->measure, measure) == 0 &&
		    (name == NULL || (m->name != NULL && strcmp(m->name, name) == 0)))
			sum += m->value;
	}
	return sum;
}

double hr_compare_run_value(const struct hr_compare_run *run, const char *measure, const char *name)
{
	for (size_t i = 0; i < run->n; i++)
		if (strcmp(run->list[i].measure, measure) == 0 && run->list[i].name != NULL &&
		    strcmp(run->list[i].name, name) == 0)
			return run->list[i].value;
	return -1;
}

const char *hr_compare_run_state(const struct hr_compare_run *run)
{
	for (size_t i = 0; i < run->n; i++)
		if (strcmp(run->list[i].measure, "state") == 0)
			return run->list[i].name;
	return NULL;
}

bool hr_compare_run_has(const struct hr_compare_run *run, const char *measure)
{
	for (size_t i = 0; i < run->n; i++)
		if (strcmp(run->list[i].measure, measure) == 0)
			return true;
	return false;
}

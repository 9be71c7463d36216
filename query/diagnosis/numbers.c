/* SPDX-License-Identifier: Apache-2.0 */
#include "query/diagnosis/numbers.h"

#include <stdlib.h>

static int by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

void hr__numbers_sort(double *list, size_t n)
{
	if (n > 0)
		qsort(list, n, sizeof(*list), by_value);
}

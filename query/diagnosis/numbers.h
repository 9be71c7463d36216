/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HEADRACE_QUERY_DIAGNOSIS_NUMBERS_H
#define HEADRACE_QUERY_DIAGNOSIS_NUMBERS_H

#include <stddef.h>

void hr__numbers_sort(double *list, size_t n);

#endif

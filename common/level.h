/* SPDX-License-Identifier: Apache-2.0 */
/* level.h - enum hr_level of proto/abi.h as text: "off", "counters", "trace"; pure functions */
#ifndef HEADRACE_COMMON_LEVEL_H
#define HEADRACE_COMMON_LEVEL_H

#include <errno.h>
#include <stdint.h>
#include <string.h>

#include "proto/abi.h"

/* Accepts any number. A number that is too large is treated as the highest level. */
static inline const char *hr_level_name(uint32_t level)
{
	static const char *const names[] = {"off", "counters", "trace"};

	return names[level <= HR_LEVEL_TRACE ? level : HR_LEVEL_TRACE];
}

/* Returns HR_LEVEL_COUNTERS or HR_LEVEL_TRACE, which users can request, or -EINVAL. */
static inline int hr_level_parse(const char *text)
{
	for (int level = HR_LEVEL_COUNTERS; level <= HR_LEVEL_TRACE; level++)
		if (strcmp(text, hr_level_name((uint32_t)level)) == 0)
			return level;
	return -EINVAL;
}

#endif

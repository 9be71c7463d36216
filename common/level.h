/* SPDX-License-Identifier: Apache-2.0 */
/*
 * level.h - how much is recorded of a job, as people write it: "off", "counters", "trace" (enum hr_level of proto/abi.h)
 *
 * Pure functions; any thread.
 */
#ifndef HEADRACE_COMMON_LEVEL_H
#define HEADRACE_COMMON_LEVEL_H

#include <errno.h>
#include <stdint.h>
#include <string.h>

#include "proto/abi.h"

/* Any number: past the last one it is that one's. */
static inline const char *hr_level_name(uint32_t level)
{
	static const char *const names[] = {"off", "counters", "trace"};

	return names[level <= HR_LEVEL_TRACE ? level : HR_LEVEL_TRACE];
}

/* HR_LEVEL_COUNTERS or HR_LEVEL_TRACE, which are what people ask for; else -EINVAL. */
static inline int hr_level_parse(const char *text)
{
	for (int level = HR_LEVEL_COUNTERS; level <= HR_LEVEL_TRACE; level++)
		if (strcmp(text, hr_level_name((uint32_t)level)) == 0)
			return level;
	return -EINVAL;
}

#endif

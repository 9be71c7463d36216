/* SPDX-License-Identifier: Apache-2.0 */
/*
 * save.h - the last save of the training state (a checkpoint), from its regions
 *
 * A program may write several files for one checkpoint, one after the other, and each is a region.
 * Regions with a pause of up to HR_SAVE_GAP_NS between them are one save, as in the query
 * `checkpoints`. Times are of CLOCK_BOOTTIME. The caller owns the struct. Pure functions.
 */
#ifndef HEADRACE_COMMON_SAVE_H
#define HEADRACE_COMMON_SAVE_H

#include <stdbool.h>
#include <stdint.h>

#define HR_SAVE_GAP_NS UINT64_C(1000000000)

struct hr_save {
	uint64_t start_ns, end_ns; /* 0: there was none */
};

/*
 * Adds a part. Returns true if another save begins with it, which replaces the last one. Ignores a
 * part of an earlier save.
 */
static inline bool hr_save_add(struct hr_save *s, uint64_t start_ns, uint64_t end_ns)
{
	if (end_ns <= start_ns || end_ns + HR_SAVE_GAP_NS < s->start_ns)
		return false;
	if (s->end_ns == 0 || start_ns > s->end_ns + HR_SAVE_GAP_NS) {
		*s = (struct hr_save){start_ns, end_ns};
		return true;
	}
	s->start_ns = start_ns < s->start_ns ? start_ns : s->start_ns;
	s->end_ns = end_ns > s->end_ns ? end_ns : s->end_ns;
	return false;
}

#endif

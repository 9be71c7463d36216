/* SPDX-License-Identifier: Apache-2.0 */
/* parts_internal.h - shared by the files that make and add up parts */
#ifndef HEADRACE_QUERY_DIAGNOSIS_PARTS_INTERNAL_H
#define HEADRACE_QUERY_DIAGNOSIS_PARTS_INTERNAL_H

#include "query/diagnosis/diagnosis.h"

/* Adds a block to its parts (ns). `imported`: when the imports ended; INT64_MIN: none. */
void hr__block_parts(const struct hr_diagnosis *d, const struct hr_block *b, int64_t imported,
		     double parts[HR_PART_END]);

/* Whether a block of this kind belongs to a single part. */
static inline bool hr__is_whole(enum hr_block_kind kind)
{
	return kind != HR_BLOCK_GAP && kind != HR_BLOCK_FETCH && kind != HR_BLOCK_UNKNOWN;
}

/* Returns the part of a block of this kind, without its time of operations. */
enum hr_part hr__whole_part(enum hr_block_kind kind);

/*
 * Receives the parts of one step of a training process or, outside steps, of one phase. The step or
 * phase begins with the block `first`. After a negative result, no more calls follow.
 */
typedef int hr_parts_put(void *data, const struct hr_train_life *life, const struct hr_block *first,
			 const uint64_t ns[HR_PART_END]);
/* Calls `put` for each step and phase of d->lives.list[number], in the order of time. */
int hr__parts_each(const struct hr_diagnosis *d, size_t number, hr_parts_put *put, void *data);

/* Rounds parts to whole nanoseconds that add up to `all`. */
void hr__whole_ns(const double parts[HR_PART_END], uint64_t all, uint64_t ret[HR_PART_END]);

#endif

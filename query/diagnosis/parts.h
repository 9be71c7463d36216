/* SPDX-License-Identifier: Apache-2.0 */
/* parts.h - what each training thread spent its time on: the parts of parts.def */
#ifndef HEADRACE_QUERY_DIAGNOSIS_PARTS_H
#define HEADRACE_QUERY_DIAGNOSIS_PARTS_H

#include "query/tables/internal.h"

enum hr_part {
#define HR_PART(NAME, ...) HR_PART_##NAME,
#include "query/diagnosis/parts.def"
#undef HR_PART
	HR_PART_END
};

const char *hr_part_name(enum hr_part part);
const char *hr_part_label(enum hr_part part); /* for users */
const char *hr_part_group(enum hr_part part); /* for diagrams */

/* Rows of a training process follow each other in the order of time, and add up to its time. */
struct hr_parts_row {
	uint32_t stream;
	uint64_t proc;
	uint64_t step, epoch; /* HR_REGION_UNKNOWN: none */
	uint64_t loader;      /* UINT64_MAX: none, or unknown */
	int64_t start_ns;     /* wall clock; start of the step or, outside steps, of the phase */
	uint64_t ns;
	uint8_t phase, part;
};

const char *hr_phase_name(unsigned phase);
bool hr_part_waits(unsigned part);   /* whether the training thread waits for a batch */
bool hr_phase_loops(unsigned phase); /* whether the phase is in a loop */

struct hr_parts {
	struct hr_parts_row *rows;
	size_t n, room;
};

#endif

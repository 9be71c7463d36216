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

const char *hr_phase_name(unsigned phase);
bool hr_part_waits(unsigned part);   /* whether the training thread waits for a batch */
bool hr_phase_loops(unsigned phase); /* whether the phase is in a loop */

#endif

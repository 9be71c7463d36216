/* SPDX-License-Identifier: Apache-2.0 */
#include "query/diagnosis/life.h"
#include "query/diagnosis/parts.h"

static const struct {
	const char *name, *label, *group;
} parts[] = {
#define HR_PART(NAME, name, label, group, meaning) {name, label, group},
#include "query/diagnosis/parts.def"
#undef HR_PART
};

const char *hr_part_name(enum hr_part part)
{
	return parts[part].name;
}

const char *hr_part_label(enum hr_part part)
{
	return parts[part].label;
}

const char *hr_part_group(enum hr_part part)
{
	return parts[part].group;
}

const char *hr_phase_name(unsigned phase)
{
	static const char *const names[] = {[HR_PHASE_START] = "start",
					    [HR_PHASE_TRAIN] = "train",
					    [HR_PHASE_VALIDATION] = "validation",
					    [HR_PHASE_BETWEEN] = "between",
					    [HR_PHASE_END] = "end"};

	return names[phase];
}

bool hr_part_waits(unsigned part)
{
	return part >= HR_PART_WAIT_READ && part <= HR_PART_WAIT_HIDDEN;
}

bool hr_phase_loops(unsigned phase)
{
	return phase == HR_PHASE_TRAIN || phase == HR_PHASE_VALIDATION;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* quantities.h - the durations that are compared (quantities.def) */
#ifndef HEADRACE_COMPARE_QUANTITIES_H
#define HEADRACE_COMPARE_QUANTITIES_H

#include <stdbool.h>

#include "common/text.h"

enum hr_quantity {
#define HR_QUANTITY(id, name, level, phases, parts) HR_QUANTITY_##id,
#include "compare/quantities.def"
#undef HR_QUANTITY
	HR_QUANTITIES
};

enum { HR_LEVEL_WHOLE, HR_LEVEL_SUM, HR_LEVEL_LEAF };

struct hr_quantity_row {
	const char *id, *name;
	int level;
	const char *phases, *parts;
};

extern const struct hr_quantity_row hr_quantity_rows[HR_QUANTITIES];

/* Whether the quantity contains a part of a phase. Of those of level 2, only one contains it. */
bool hr_quantity_has(enum hr_quantity quantity, const char *phase, const char *part);

/* A duration for people, also a negative one. */
struct hr_human hr_compare_seconds(double seconds);

/* A mean number for people, rounded; not negative. */
struct hr_human hr_compare_count(double n);

#endif

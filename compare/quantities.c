/* SPDX-License-Identifier: Apache-2.0 */
#include "compare/quantities.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "common/text.h"

const struct hr_quantity_row hr_quantity_rows[HR_QUANTITIES] = {
#define HR_QUANTITY(id, name, level, phases, parts) {#id, name, level, phases, parts},
#include "compare/quantities.def"
#undef HR_QUANTITY
};

static bool matches(const struct hr_quantity_row *row, const char *phase, const char *part)
{
	return phase[0] != '\0' && strchr(row->phases, phase[0]) != NULL &&
	       (strcmp(row->parts, "*") == 0 || hr_text_has_word(row->parts, part));
}

bool hr_quantity_has(enum hr_quantity quantity, const char *phase, const char *part)
{
	if (!matches(&hr_quantity_rows[quantity], phase, part))
		return false;
	for (unsigned i = 0; i < quantity; i++)
		if (hr_quantity_rows[quantity].level == HR_LEVEL_LEAF &&
		    hr_quantity_rows[i].level == HR_LEVEL_LEAF &&
		    matches(&hr_quantity_rows[i], phase, part))
			return false;
	return true;
}

struct hr_human hr_compare_seconds(double seconds)
{
	struct hr_human text = hr_text_duration((uint64_t)(fabs(seconds) * 1e9)), ret;

	snprintf(ret.s, sizeof(ret.s), "%s%.30s", seconds < 0 ? "-" : "", text.s);
	return ret;
}

struct hr_human hr_compare_count(double n)
{
	return hr_text_count((uint64_t)(n + 0.5));
}

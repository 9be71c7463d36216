/* SPDX-License-Identifier: Apache-2.0 */
/* Names and categories of slices, which the trace has once each. */
#include <string.h>

#include "common/fnv.h"
#include "export/trace/trace.h"

void hr_trace_intern(struct hr_trace *t, bool *done, enum hr_interned kind, uint64_t number,
		     const struct hr_bytes *text)
{
	if (!*done && t->out->intern != NULL)
		t->out->intern(t->out, kind, number, text);
	*done = true;
}

void hr_trace_category(struct hr_trace *t, struct hr_slice *s, unsigned number, const char *text)
{
	s->category = number + 1;
	s->category_text = (struct hr_bytes){text, strlen(text)};
	hr_trace_intern(t, &t->category_named[number], HR_INTERNED_CATEGORY, s->category,
			&s->category_text);
}

/* Names of operations have the numbers 1 to HR_OP_MAX, other names the numbers above. */
void hr_trace_name(struct hr_trace *t, struct hr_slice *s, const void *text, size_t bytes)
{
	uint64_t hash = hr_fnv(HR_FNV_BASIS, text, bytes);
	uint32_t i = hr_map64_get(&t->names, hash);
	bool done = i != HR_MAP64_NONE;

	if (!done) {
		i = t->names.used;
		if (hr_map64_set(&t->names, hash, i) < 0)
			return;
	}
	s->name = HR_OP_MAX + 1 + (uint64_t)i;
	s->name_text = (struct hr_bytes){text, bytes};
	hr_trace_intern(t, &done, HR_INTERNED_NAME, s->name, &s->name_text);
}

void hr_trace_op_name(struct hr_trace *t, struct hr_slice *s, uint16_t op,
		      const struct hr_op_info *info)
{
	const char *name = info->name != NULL ? info->name : "unknown";

	s->name = op % HR_OP_MAX + 1u;
	s->name_text = (struct hr_bytes){name, strlen(name)};
	hr_trace_intern(t, &t->op_named[op % HR_OP_MAX], HR_INTERNED_NAME, s->name, &s->name_text);
}

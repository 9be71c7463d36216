/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/summary/summary_python.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "cli/summary/summary_print.h"
#include "common/text.h"

static const char *const names[HR_SUMMARY_PYTHON_KINDS] = {
    [HR_SUMMARY_FUNCTIONS] = "functions",
    [HR_SUMMARY_STACKS] = "stacks",
    [HR_SUMMARY_MARKS] = "marks",
};

/* Whether the text with this number (0: none) is `want`. */
static bool is_text(const Headrace__Regions *frame, uint32_t text, const char *want)
{
	const ProtobufCBinaryData *t;

	if (text == 0 || text > frame->n_texts)
		return false;
	t = &frame->texts[text - 1];
	return t->len == strlen(want) && memcmp(t->data, want, t->len) == 0;
}

/*
 * Returns the value in the arguments of a mark (malloc'ed), or NULL: no memory. `key`: the member's
 * name and the quote that begins its value.
 */
static char *value_of(const Headrace__Regions *frame, uint32_t args, const char *key)
{
	ProtobufCBinaryData t = {0};
	const char *from, *end;

	if (args > 0 && args <= frame->n_texts)
		t = frame->texts[args - 1];
	from = t.len > 0 ? memmem(t.data, t.len, key, strlen(key)) : NULL;
	if (from == NULL)
		return strdup("for an unknown reason");
	from += strlen(key);
	end = memchr(from, '"', t.len - (size_t)(from - (const char *)t.data));
	return end != NULL ? hr_text_escaped(from, (size_t)(end - from)) : strdup("");
}

int hr_summary_python_add(struct hr_summary_python *p, const Headrace__Regions *frame,
			  const struct hr_region *region)
{
	if (region->kind == HR_REGION_RANGE && is_text(frame, region->category, "function") &&
	    is_text(frame, region->domain, "python"))
		p->functions += region->count;
	if (region->kind != HR_REGION_MARK || !is_text(frame, region->domain, "headrace"))
		return 0;
	for (int i = 0; i < HR_SUMMARY_PYTHON_KINDS; i++) {
		if (!is_text(frame, region->name, names[i]))
			continue;
		if (p->reasons[i] == NULL)
			p->reasons[i] = value_of(frame, region->args, "\"reason\":\"");
		if (p->reasons[i] == NULL)
			return -ENOMEM;
	}
	if (p->framework == NULL && is_text(frame, region->name, "framework")) {
		p->framework = value_of(frame, region->args, "\"name\":\"");
		if (p->framework == NULL)
			return -ENOMEM;
	}
	return 0;
}

void hr_summary_python_done(struct hr_summary_python *p)
{
	for (int i = 0; i < HR_SUMMARY_PYTHON_KINDS; i++)
		free(p->reasons[i]);
	free(p->framework);
}

void hr_summary_python_print(const struct hr_summary_python *p, bool loops, struct hr_sheet *sheet)
{
	if (p->framework != NULL && !loops)
		hr__summary_say(sheet, HR_STYLE_WARN, "  note",
				"no steps of a training and no waits for data are known: if this "
				"program trains with %s in a loop of its own, call "
				"headrace.step(number) in it, and mark its waits: "
				"headrace.region(kind=headrace.INPUT_WAIT)",
				p->framework);
	for (int i = 0; i < HR_SUMMARY_PYTHON_KINDS; i++)
		if (p->reasons[i] != NULL)
			hr__summary_say(sheet, HR_STYLE_WARN, "  note",
					"%s are missing, of all processes or of some: %s", names[i],
					p->reasons[i]);
	if (p->globs != NULL && p->functions == 0 && p->reasons[HR_SUMMARY_FUNCTIONS] == NULL)
		hr__summary_say(
		    sheet, HR_STYLE_WARN, "  note",
		    "no function was recorded: no called function of a Python file below the "
		    "working directory has a name that --functions=%s matches",
		    p->globs);
}

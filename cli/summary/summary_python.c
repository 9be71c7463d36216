/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/summary/summary_parts.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/json_part.h"
#include "common/text.h"

static const char *const names[HR_SUMMARY_PYTHON_KINDS] = {
    [HR_SUMMARY_FUNCTIONS] = "functions",
    [HR_SUMMARY_STACKS] = "stacks",
    [HR_SUMMARY_MARKS] = "marks",
};

/* Returns a text in the arguments of a mark (malloc'ed), or NULL: no memory. */
static char *value_of(const Headrace__Regions *frame, uint32_t args, const char *key)
{
	ProtobufCBinaryData t = {0};
	struct hr_json_part value;
	char *text, *escaped;

	if (args > 0 && args <= frame->n_texts)
		t = frame->texts[args - 1];
	if (!hr_json_part_find(t.data, t.len, key, &value) || value.type != HR_JSON_STRING)
		return strdup("for an unknown reason");
	text = malloc(value.n + 1);
	escaped = text != NULL ? hr_text_escaped(text, hr_json_part_text(&value, text)) : NULL;
	free(text);
	return escaped;
}

int hr_summary_python_add(struct hr_summary_python *p, const Headrace__Regions *frame,
			  const struct hr_region *region)
{
	if (region->kind == HR_REGION_RANGE &&
	    hr_regions_text_is(frame, region->category, "function") &&
	    hr_regions_text_is(frame, region->domain, "python"))
		p->functions += region->count;
	if (region->kind != HR_REGION_MARK ||
	    !hr_regions_text_is(frame, region->domain, "headrace"))
		return 0;
	p->hangs |= hr_regions_text_is(frame, region->name, "hang");
	for (int i = 0; i < HR_SUMMARY_PYTHON_KINDS; i++) {
		if (!hr_regions_text_is(frame, region->name, names[i]))
			continue;
		if (p->reasons[i] == NULL)
			p->reasons[i] = value_of(frame, region->args, "reason");
		if (p->reasons[i] == NULL)
			return -ENOMEM;
	}
	if (p->framework == NULL && hr_regions_text_is(frame, region->name, "framework")) {
		p->framework = value_of(frame, region->args, "name");
		if (p->framework == NULL)
			return -ENOMEM;
	}
	return 0;
}

/* Whether a word is an option of Python that lets it ignore PYTHONPATH: -E, -I or -S. */
static bool ignores_path(const char *word)
{
	return strcspn(word, "EIS") < strcspn(word, "cmWX"); /* letters after these are a value */
}

void hr_summary_python_take(struct hr_summary_python *p, const ProtobufCBinaryData *cmdline)
{
	char text[256], *next = text, *word, *name;
	size_t n = cmdline->len < sizeof(text) - 1 ? cmdline->len : sizeof(text) - 1;
	bool ignores = false;

	if (n == 0)
		return;
	memcpy(text, cmdline->data, n);
	text[n] = '\0';
	name = strsep(&next, " ");
	name = strrchr(name, '/') != NULL ? strrchr(name, '/') + 1 : name;
	if (strncmp(name, "python", strlen("python")) != 0)
		return;
	while ((word = strsep(&next, " ")) != NULL && word[0] == '-' && word[1] != '-')
		ignores |= ignores_path(word);
	p->ignoring += ignores;
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
	if (p->ignoring > 0 && !loops)
		hr__summary_say(sheet, HR_STYLE_WARN, "  note",
				"no training loop and no wait for data is known of %u Python "
				"process%s: the options -E, -I or -S let Python ignore "
				"PYTHONPATH, which loads headrace's marks; start them without "
				"these options",
				p->ignoring, p->ignoring == 1 ? "" : "es");
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

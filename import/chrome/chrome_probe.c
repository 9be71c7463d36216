/* SPDX-License-Identifier: Apache-2.0 */
/* Whether a file is a Chrome trace: an object with known members, or an array of events. */
#include <errno.h>
#include <string.h>

#include "import/chrome/chrome.h"

#define EVENTS_MOST 64u /* of an array, before it is taken for a .pfw file */

bool hr__chrome_member_is(const struct hr_json_part *key)
{
	static const char *const names[] = {"traceEvents", "schemaVersion", "deviceProperties",
					    "baseTimeNanoseconds", "displayTimeUnit"};

	return key->type == HR_JSON_STRING &&
	       hr_json_part_is_any(key, names, sizeof(names) / sizeof(names[0]));
}

/*
 * Accepts an object also if a member of it is so long that the others are not in the head: the file
 * is read to find them.
 */
static bool object_is_trace(const char *p, const char *end)
{
	struct hr_json_part key = {0}, value;
	int r;

	do {
		r = hr_json_part_member(&p, end, &key, &value);
		if ((r == 1 || r == -EAGAIN) && hr__chrome_member_is(&key))
			return true;
	} while (r == 1);
	return r == -EAGAIN;
}

static const char *blanks_skip(const char *p, const char *end, const char *blanks)
{
	while (p < end && *p && strchr(blanks, *p))
		p++;
	return p;
}

/* Whether an event is one of DFTracer or DLIO: it has their category, or a number and a host or file. */
static bool event_is_pfw(const struct chrome_event *e)
{
	static const char *const names[] = {"hhash", "fhash", "hostname", "fname"};
	struct hr_json_part key, value;
	const char *at;

	if (hr_json_part_is(&e->cat, "dftracer"))
		return true;
	if (e->id.type == HR_JSON_NONE || e->args.type != HR_JSON_OBJECT)
		return false;
	at = e->args.p + 1;
	while (hr_json_part_member(&at, e->args.p + e->args.n, &key, &value) == 1)
		if (hr_json_part_is_any(&key, names, sizeof(names) / sizeof(names[0])))
			return true;
	return false;
}

/*
 * Accepts an array of events unless they look like those of a .pfw file: each has a line, without a
 * comma after it, or it is one of its writers'.
 */
static bool array_is_trace(const char *p, const char *end)
{
	for (unsigned i = 0; i < EVENTS_MOST; i++) {
		struct chrome_event e;
		const char *from = p = blanks_skip(p, end, " \n\t\r");
		int r = p < end ? hr__chrome_event_read(&p, end, &e) : -EBADMSG;

		if (!r && hr__chrome_event_is_empty(from)) {
			p = blanks_skip(p, end, " \n\t\r,");
			if (p < end && *p == ']')
				return true;
			continue;
		}
		if ((r && r != -EAGAIN) || e.ph.type != HR_JSON_STRING || e.ph.n != 1 ||
		    event_is_pfw(&e))
			return false;
		if (r == -EAGAIN || memchr(from, '\n', (size_t)(p - from)))
			return true;
		p = blanks_skip(p, end, " \t");
		if (p < end && *p == '{')
			return true;
		p = blanks_skip(p, end, " \n\t\r");
		if (p < end && (*p == ',' || *p == ']'))
			return true;
	}
	return false;
}

bool hr__chrome_probe(const uint8_t *head, size_t bytes)
{
	const char *end = (const char *)head + bytes;
	const char *p = blanks_skip((const char *)head, end, " \n\t\r");

	if (p == end)
		return false;
	if (*p == '{')
		return object_is_trace(p + 1, end);
	return *p == '[' && array_is_trace(p + 1, end);
}

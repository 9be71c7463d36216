/* SPDX-License-Identifier: Apache-2.0 */
/* The lines of Python in which batches were made: samples of stacks (proto/args.def: `stacks`). */
#include "query/diagnosis/life_internal.h"

#include <errno.h>

#include "common/array.h"
#include "common/fnv.h"
#include "common/json_part.h"
#include "proto/args.h"

/*
 * A sample waits for Python's lock. If it gets the lock at once, the thread is where it was when
 * the sample was due: in a call that does not need the lock. If the thread computes, Python takes
 * the lock from it after 5 ms (sys.getswitchinterval), at any of its lines. In between, the thread
 * gave the lock away itself, always in the same few calls, although it was in other lines, too.
 */
#define AT_ONCE_NS 100000
#define TAKEN_NS   4500000

/* Returns a copy of the text, one for each text that this reader finds. NULL: memory is short. */
static const char *line_text(struct hr_life_reader *r, const struct hr_json_part *line)
{
	uint64_t hash = hr_fnv(HR_FNV_BASIS, line->p, line->n);
	uint32_t i = hr_map64_get(&r->line_numbers, hash);
	char *text;

	if (i != HR_MAP64_NONE)
		return r->line_texts[i];
	i = (uint32_t)r->n_line_texts;
	if (!hr_array_reserve(r->line_texts, r->n_line_texts, r->line_texts_room) ||
	    hr_map64_set(&r->line_numbers, hash, i) < 0)
		return NULL;
	text = hr_pool_get(&r->q->pool, line->n + 1);
	if (text == NULL)
		return NULL;
	text[hr_json_part_text(line, text)] = '\0';
	r->line_texts[r->n_line_texts++] = text;
	return text;
}

static int add_part(struct hr_life_reader *r, const struct hr_json_part *part, int64_t began)
{
	struct hr_train_lives *to = r->to;
	struct hr_json_part from, line, late;
	const char *text = NULL;
	int64_t ns, late_ns;

	if (!hr_json_part_find(part->p, part->n, HR_ARGS_FROM_NS, &from) ||
	    !hr_json_part_int(&from, &ns) || ns < 0 ||
	    !hr_json_part_find(part->p, part->n, HR_ARGS_LINE, &line) ||
	    line.type != HR_JSON_STRING)
		return 0;
	if (hr_json_part_find(part->p, part->n, HR_ARGS_LATE_NS, &late) &&
	    hr_json_part_int(&late, &late_ns) && (late_ns < AT_ONCE_NS || late_ns >= TAKEN_NS)) {
		text = line_text(r, &line);
		if (text == NULL)
			return -ENOMEM;
	}
	if (!hr_array_reserve(to->lines, to->n_lines, to->lines_room))
		return -ENOMEM;
	to->lines[to->n_lines++] =
	    (struct hr_line_part){.from = hr_end_ns(began, (uint64_t)ns), .line = text};
	return 0;
}

int hr__lines_add(struct hr_life_reader *r, const uint8_t *at, const uint8_t *end,
		  struct hr_mark *to)
{
	const char *p = (const char *)at;
	struct hr_json_part list, part;
	int error = 0;

	to->first_line = (uint32_t)r->to->n_lines;
	if (hr_json_part_read(&p, (const char *)end, &list) < 0 || list.type != HR_JSON_ARRAY)
		return 0;
	p = list.p + 1;
	while (error == 0 && hr_json_part_read(&p, list.p + list.n, &part) == 0) {
		error = add_part(r, &part, to->from);
		p += *p == ',';
	}
	to->n_lines = (uint32_t)r->to->n_lines - to->first_line;
	return error;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* What processes had done for much longer than usual: marks `hang` (proto/args.def). */
#include "query/diagnosis/life_internal.h"

#include <errno.h>
#include <string.h>

#include "common/array.h"
#include "common/json_part.h"
#include "common/text.h"
#include "proto/args.h"

#define OTHERS_MAX 4 /* lines of other threads that are shown */

/* Appends a member of a JSON object to a text. A member that is missing appends nothing. */
static void append(const struct hr_json_part *object, const char *key, char *room, size_t size)
{
	struct hr_json_part value;
	size_t n = strlen(room);

	if (hr_json_part_find(object->p, object->n, key, &value) && value.type == HR_JSON_STRING &&
	    n + value.n < size)
		room[n + hr_json_part_text(&value, room + n)] = '\0';
}

/* The text is of another machine: it is escaped. */
static const char *in_pool(struct hr_life_reader *r, const char *text)
{
	size_t n = strlen(text), size = 4 * n + 1;
	char *copy = hr_pool_get(&r->q->pool, size);

	if (copy != NULL)
		hr_text_escape(copy, size, text, n);
	return copy;
}

const char *hr__text_of(struct hr_life_reader *r, const struct hr_json_part *object,
			const char *key)
{
	char room[4096] = "";

	append(object, key, room, sizeof(room));
	return in_pool(r, room);
}

static const char *others_of(struct hr_life_reader *r, const struct hr_json_part *object)
{
	char room[1024] = "";
	struct hr_json_part list, thread;
	const char *p;

	if (!hr_json_part_find(object->p, object->n, HR_ARGS_THREADS, &list) ||
	    list.type != HR_JSON_ARRAY)
		return in_pool(r, room);
	p = list.p + 1;
	for (int i = 0; i < OTHERS_MAX && hr__next_of(&list, &p, &thread); i++) {
		size_t n = strlen(room);

		if (n > 0 && n + sizeof(", ") <= sizeof(room))
			memcpy(room + n, ", ", sizeof(", "));
		append(&thread, HR_ARGS_LINE, room, sizeof(room));
	}
	return in_pool(r, room);
}

uint64_t hr__number_of(const struct hr_json_part *object, const char *key)
{
	struct hr_json_part value;
	int64_t n;

	return hr_json_part_find(object->p, object->n, key, &value) &&
		       hr_json_part_int(&value, &n) && n > 0
		   ? (uint64_t)n
		   : 0;
}

static enum hr_hang_in in_of(const struct hr_json_part *object)
{
	struct hr_json_part in;

	if (!hr_json_part_find(object->p, object->n, HR_ARGS_IN, &in))
		return HR_HANG_STEP;
	return hr_json_part_is(&in, "fetch")   ? HR_HANG_FETCH
	       : hr_json_part_is(&in, "wait")  ? HR_HANG_WAIT
	       : hr_json_part_is(&in, "group") ? HR_HANG_GROUP
					       : HR_HANG_STEP;
}

int hr__hang_add(struct hr_life_reader *r, const struct hr_json_part *args, struct hr_hang *to,
		 int64_t at)
{
	if (at <= to->at)
		return 0;
	*to = (struct hr_hang){.at = at,
			       .since_ns = hr__number_of(args, HR_ARGS_SINCE_NS),
			       .usual_ns = hr__number_of(args, HR_ARGS_USUAL_NS),
			       .in = in_of(args),
			       .line = hr__text_of(r, args, HR_ARGS_LINE),
			       .stack = hr__text_of(r, args, HR_ARGS_STACK),
			       .call = hr__text_of(r, args, HR_ARGS_CALL),
			       .target = hr__text_of(r, args, HR_ARGS_TARGET),
			       .others = others_of(r, args)};
	return to->line != NULL && to->stack != NULL && to->call != NULL && to->target != NULL &&
		       to->others != NULL
		   ? 0
		   : -ENOMEM;
}

struct hr_hang hr__hang_now(struct hr_hang hang, const struct hr_mark *marks, size_t n,
			    uint32_t tid)
{
	for (size_t i = 0; i < n; i++)
		if (marks[i].kind != HR_MARK_BUSY && marks[i].kind != HR_MARK_HANG &&
		    !marks[i].open && marks[i].to > hang.at && (tid == 0 || marks[i].tid == tid))
			hang.at = 0;
	return hang;
}

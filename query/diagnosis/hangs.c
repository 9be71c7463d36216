/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What processes had done for much longer than usual, and exceptions: marks `hang` and `exception`
 * (proto/args.def).
 */
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

/* Returns the place of the hang of this process; NULL: memory is short. */
static struct hr_hang *place_of(struct hr_life_reader *r, uint64_t proc)
{
	size_t i = 0;

	while (i < r->n_hangs && r->hangs[i].proc != proc)
		i++;
	if (i < r->n_hangs)
		return &r->hangs[i];
	if (!hr_array_reserve(r->hangs, r->n_hangs, r->hangs_room))
		return NULL;
	r->hangs[r->n_hangs] = (struct hr_hang){.proc = proc};
	return &r->hangs[r->n_hangs++];
}

int hr__hang_add(struct hr_life_reader *r, const ProtobufCBinaryData *args, uint64_t proc,
		 int64_t at)
{
	struct hr_json_part object = {.p = (const char *)args->data, .n = args->len};
	struct hr_hang *to = place_of(r, proc);

	if (to == NULL)
		return -ENOMEM;
	if (at <= to->at)
		return 0;
	*to = (struct hr_hang){.proc = proc,
			       .at = at,
			       .since_ns = hr__number_of(&object, HR_ARGS_SINCE_NS),
			       .usual_ns = hr__number_of(&object, HR_ARGS_USUAL_NS),
			       .in = in_of(&object),
			       .line = hr__text_of(r, &object, HR_ARGS_LINE),
			       .stack = hr__text_of(r, &object, HR_ARGS_STACK),
			       .call = hr__text_of(r, &object, HR_ARGS_CALL),
			       .target = hr__text_of(r, &object, HR_ARGS_TARGET),
			       .others = others_of(r, &object)};
	return to->line != NULL && to->stack != NULL && to->call != NULL && to->target != NULL &&
		       to->others != NULL
		   ? 0
		   : -ENOMEM;
}

/* Returns the exception of this process; NULL: there is none. */
static struct hr_exception *exception_at(const struct hr_life_reader *r, uint64_t proc)
{
	for (size_t i = 0; i < r->n_exceptions; i++)
		if (r->exceptions[i].proc == proc)
			return &r->exceptions[i];
	return NULL;
}

int hr__exception_add(struct hr_life_reader *r, const ProtobufCBinaryData *args, uint64_t proc,
		      int64_t at)
{
	struct hr_json_part object = {.p = (const char *)args->data, .n = args->len};
	struct hr_exception *e = exception_at(r, proc);

	if (e != NULL && e->at <= at)
		return 0;
	if (e == NULL) {
		if (!hr_array_reserve(r->exceptions, r->n_exceptions, r->exceptions_room))
			return -ENOMEM;
		e = &r->exceptions[r->n_exceptions++];
	}
	*e = (struct hr_exception){.proc = proc,
				   .at = at,
				   .type = hr__text_of(r, &object, HR_ARGS_TYPE),
				   .line = hr__text_of(r, &object, HR_ARGS_LINE)};
	return e->type != NULL && e->line != NULL ? 0 : -ENOMEM;
}

struct hr_exception hr__exception_of(const struct hr_life_reader *r, uint64_t proc)
{
	const struct hr_exception *e = exception_at(r, proc);

	return e != NULL ? *e : (struct hr_exception){0};
}

struct hr_hang hr__hang_now(const struct hr_life_reader *r, const struct hr_mark *marks, size_t n,
			    uint32_t tid)
{
	struct hr_hang hang = {0};

	for (size_t i = 0; i < r->n_hangs; i++)
		if (r->hangs[i].proc == marks[0].proc)
			hang = r->hangs[i];
	for (size_t i = 0; i < n; i++)
		if (marks[i].kind != HR_MARK_BUSY && marks[i].kind != HR_MARK_HANG &&
		    !marks[i].open && marks[i].to > hang.at && (tid == 0 || marks[i].tid == tid))
			hang.at = 0;
	return hang;
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What headrace has marked about a process (proto/args.def): `exception`, `optimizer` and
 * `padding`; hangs.c reads `hang`.
 */
#include "query/diagnosis/life_internal.h"

#include <errno.h>

#include "common/array.h"
#include "common/json_part.h"
#include "proto/args.h"

struct hr_process_marks *hr__process_marks(struct hr_life_reader *r, uint64_t proc)
{
	size_t i = 0;

	while (i < r->n_of_process && r->of_process[i].proc != proc)
		i++;
	if (i < r->n_of_process)
		return &r->of_process[i];
	if (!hr_array_reserve(r->of_process, r->n_of_process, r->of_process_room))
		return NULL;
	r->of_process[r->n_of_process] = (struct hr_process_marks){.proc = proc};
	return &r->of_process[r->n_of_process++];
}

/* Keeps the first exception. */
static int add_exception(struct hr_life_reader *r, const struct hr_json_part *args,
			 struct hr_exception *e, uint64_t proc, int64_t at)
{
	if (e->at != 0 && e->at <= at)
		return 0;
	*e = (struct hr_exception){.proc = proc,
				   .at = at,
				   .type = hr__text_of(r, args, HR_ARGS_TYPE),
				   .line = hr__text_of(r, args, HR_ARGS_LINE)};
	return e->type != NULL && e->line != NULL ? 0 : -ENOMEM;
}

static int add_updates(struct hr_life_reader *r, const struct hr_json_part *args,
		       struct hr_updates *u)
{
	uint64_t elements = hr__number_of(args, HR_ARGS_ELEMENTS);
	struct hr_json_part fused;

	u->elements += (double)elements;
	u->idle += (double)hr__number_of(args, HR_ARGS_IDLE);
	if (elements <= u->most)
		return 0;
	u->most = elements;
	u->rows = hr__number_of(args, HR_ARGS_ROWS);
	u->columns = hr__number_of(args, HR_ARGS_COLUMNS);
	u->fused = hr_json_part_find(args->p, args->n, HR_ARGS_FUSED, &fused) &&
		   hr_json_part_is(&fused, "true");
	u->type = hr__text_of(r, args, HR_ARGS_TYPE);
	return u->type != NULL ? 0 : -ENOMEM;
}

static void add_padding(const struct hr_json_part *args, struct hr_padding *p)
{
	p->tokens += (double)hr__number_of(args, HR_ARGS_TOKENS);
	p->padded += (double)hr__number_of(args, HR_ARGS_PADDED);
	p->beyond += (double)hr__number_of(args, HR_ARGS_BEYOND);
}

int hr__process_mark_add(struct hr_life_reader *r, uint32_t kind, const ProtobufCBinaryData *args,
			 uint64_t proc, int64_t at)
{
	struct hr_json_part object = {.p = (const char *)args->data, .n = args->len};
	struct hr_process_marks *to = hr__process_marks(r, proc);

	if (to == NULL)
		return -ENOMEM;
	if (kind == HR_MARK_HANG)
		return hr__hang_add(r, &object, &to->hang, at);
	if (kind == HR_MARK_EXCEPTION)
		return add_exception(r, &object, &to->raised, proc, at);
	if (kind == HR_MARK_UPDATES)
		return add_updates(r, &object, &to->updates);
	add_padding(&object, &to->padding);
	return 0;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* What optimizers update: marks `optimizer` (proto/args.def). */
#include "query/diagnosis/life_internal.h"

#include <errno.h>

#include "common/array.h"
#include "common/json_part.h"
#include "proto/args.h"

/* Returns what the optimizers of this process update; NULL: not known. */
static struct hr_updates *updates_at(const struct hr_life_reader *r, uint64_t proc)
{
	for (size_t i = 0; i < r->n_updates; i++)
		if (r->updates[i].proc == proc)
			return &r->updates[i];
	return NULL;
}

int hr__updates_add(struct hr_life_reader *r, const ProtobufCBinaryData *args, uint64_t proc)
{
	struct hr_json_part object = {.p = (const char *)args->data, .n = args->len}, fused;
	uint64_t elements = hr__number_of(&object, HR_ARGS_ELEMENTS);
	struct hr_updates *u = updates_at(r, proc);

	if (u == NULL) {
		if (!hr_array_reserve(r->updates, r->n_updates, r->updates_room))
			return -ENOMEM;
		u = &r->updates[r->n_updates++];
		*u = (struct hr_updates){.proc = proc};
	}
	u->elements += (double)elements;
	u->idle += (double)hr__number_of(&object, HR_ARGS_IDLE);
	if (elements <= u->most)
		return 0;
	u->most = elements;
	u->rows = hr__number_of(&object, HR_ARGS_ROWS);
	u->columns = hr__number_of(&object, HR_ARGS_COLUMNS);
	u->fused = hr_json_part_find(object.p, object.n, HR_ARGS_FUSED, &fused) &&
		   hr_json_part_is(&fused, "true");
	u->type = hr__text_of(r, &object, HR_ARGS_TYPE);
	return u->type != NULL ? 0 : -ENOMEM;
}

struct hr_updates hr__updates_of(const struct hr_life_reader *r, uint64_t proc)
{
	const struct hr_updates *u = updates_at(r, proc);

	return u != NULL ? *u : (struct hr_updates){0};
}

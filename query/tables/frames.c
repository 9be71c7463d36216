/* SPDX-License-Identifier: Apache-2.0 */
#include "query/tables/frames.h"

#include <errno.h>
#include <stdlib.h>

#include "common/array.h"

int hr_frames_read(struct hr_query *q, const struct hr_qstream *st, int body_case,
		   struct hr_frames *ret)
{
	struct hr_frames f = {0};
	size_t size = 0;

	for (uint32_t i = 0; i < st->s->n_frames; i++) {
		int r;

		if (st->s->frames[i].kind != (uint32_t)body_case)
			continue;
		r = hr_array_reserve(f.list, f.n, size) ? 0 : -ENOMEM;
		if (r == 0)
			r = hr_stream_read_into(st->s, i, &f.arena, &f.list[f.n]);
		if (r == 0 && (int)f.list[f.n]->body_case != body_case)
			r = -EBADMSG;
		f.n += r == 0;
		if (r < 0 && hr_query_damage(q, st, i, r) < 0) {
			hr_frames_free(&f);
			return r;
		}
	}
	*ret = f;
	return 0;
}

void hr_frames_free(struct hr_frames *f)
{
	free(f->list);
	hr_arena_free(&f->arena);
	*f = (struct hr_frames){0};
}

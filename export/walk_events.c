/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdlib.h>

#include "export/walk.h"
#include "store/batch_reader.h"

/* Memory that is used for one frame after the other. */
struct event_reader {
	const struct hr_walk_stream *ws;
	struct hr_batch_reader reader;
	uint32_t rows[HR_BATCH_EVENTS];
	struct hr_walk_process *process[HR_BATCH_TASKS];
};

/* Whether the batch can have selected rows, by its index alone. */
static bool may_match(const struct hr_walk_stream *ws, const struct hr_batch_ref *b)
{
	for (uint32_t i = 0; i < b->n_procs; i++) {
		const struct hr_walk_process *p = hr_walk_process(ws, b->procs[i]);

		if (p != NULL && p->number != 0 && b->base_ns <= p->to_ns &&
		    b->last_ns >= p->from_ns)
			return true;
	}
	return false;
}

bool hr_walk_has_events(const struct hr_walk_stream *s)
{
	for (uint32_t i = 0; i < s->s->n_batches; i++)
		if (may_match(s, &s->s->batches[i]))
			return true;
	return false;
}

static uint32_t select_events(struct event_reader *e, const struct hr_columns *c)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < c->n_tasks; i++) {
		struct hr_walk_process *p = hr_walk_process(e->ws, c->tasks[i].proc);

		e->process[i] = p != NULL && p->number != 0 ? p : NULL;
	}
	for (uint32_t i = 0; i < c->count; i++) {
		const struct hr_walk_process *p = e->process[c->task[i]];

		e->rows[n] = i;
		n += p != NULL && c->start_ns[i] <= p->to_ns &&
		     c->start_ns[i] + c->dur_ns[i] >= p->from_ns &&
		     (e->ws->scope < 0 ||
		      hr_walk_has_scope(e->ws, (c->bits[i] & HR_EV_SCOPE_RUNTIME) != 0));
	}
	return n;
}

int hr_walk_events(const struct hr_walk_stream *ws, uint32_t want, hr_walk_visit *visit, void *self,
		   uint64_t *damaged)
{
	struct event_reader *e = calloc(1, sizeof(*e));
	int r = 0;

	if (e == NULL)
		return -ENOMEM;
	e->ws = ws;
	want |= HR_COL_BIT(HR_COL_START) | HR_COL_BIT(HR_COL_DUR);
	if (ws->scope >= 0)
		want |= HR_COL_BIT(HR_COL_BITS);
	for (uint32_t i = 0; i < ws->s->n_batches && r == 0; i++) {
		struct hr_walk_batch b = {.rows = e->rows, .process = e->process};

		if (!may_match(ws, &ws->s->batches[i]))
			continue;
		r = hr_batch_read(&e->reader, ws->s, &ws->s->batches[i], want, &b.c);
		if (r == 0) {
			b.n_rows = select_events(e, &b.c);
			r = b.n_rows > 0 ? visit(self, ws, &b) : 0;
		} else if (r != -ENOMEM) {
			if (damaged != NULL)
				++*damaged;
			r = 0;
		}
	}
	hr_batch_reader_done(&e->reader);
	free(e);
	return r;
}

/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdlib.h>

#include "export/walk.h"
#include "store/batch_reader.h"

struct hr_walk_events {
	const struct hr_walk_stream *ws;
	uint32_t want;
	uint32_t next; /* batch of the stream */
	uint64_t damaged;
	struct hr_batch_reader reader;
	uint32_t rows[HR_BATCH_EVENTS];
	struct hr_walk_process *process[HR_BATCH_TASKS];
};

int hr_walk_events_new(const struct hr_walk_stream *s, uint32_t want, struct hr_walk_events **ret)
{
	struct hr_walk_events *e = calloc(1, sizeof(*e));

	if (e == NULL)
		return -ENOMEM;
	e->ws = s;
	e->want = want | HR_COL_BIT(HR_COL_START) | HR_COL_BIT(HR_COL_DUR);
	if (s->scope >= 0)
		e->want |= HR_COL_BIT(HR_COL_BITS);
	*ret = e;
	return 0;
}

void hr_walk_events_free(struct hr_walk_events *e)
{
	if (e == NULL)
		return;
	hr_batch_reader_done(&e->reader);
	free(e);
}

uint64_t hr_walk_events_damaged(const struct hr_walk_events *e)
{
	return e->damaged;
}

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

static uint32_t select_events(struct hr_walk_events *e, const struct hr_columns *c)
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

int hr_walk_events_next(struct hr_walk_events *e, struct hr_walk_batch *ret)
{
	const struct hr_stream *s = e->ws->s;

	while (e->next < s->n_batches) {
		const struct hr_batch_ref *ref = &s->batches[e->next++];
		int r;

		if (!may_match(e->ws, ref))
			continue;
		r = hr_batch_read(&e->reader, s, ref, e->want, &ret->c);
		if (r == -ENOMEM)
			return r;
		if (r < 0) {
			e->damaged++;
			continue;
		}
		ret->n_rows = select_events(e, &ret->c);
		ret->rows = e->rows;
		ret->process = e->process;
		if (ret->n_rows > 0)
			return 1;
	}
	return 0;
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "query/diagnosis/life_internal.h"

#include <errno.h>
#include <stdlib.h>

#include "common/array.h"

/* If a hand-over takes longer, the worker is making its next batch, which delays it. */
#define HANDOVER_NS 5000000

static int by_batch(const void *a, const void *b)
{
	const struct hr_made *x = a, *y = b;

	if (x->loader != y->loader)
		return x->loader < y->loader ? -1 : 1;
	if (x->batch != y->batch)
		return x->batch < y->batch ? -1 : 1;
	return (x->from > y->from) - (x->from < y->from);
}

/* Whether a process is a child of the training process, directly or through its fork server. */
static bool is_child(const struct hr_life_reader *r, uint64_t proc)
{
	for (int i = 0; i < 4 && proc != 0; i++) {
		const struct hr_process *p = hr_stream_process(r->q->streams[r->stream].s, proc);

		proc = p != NULL ? p->msg->parent_proc : 0;
		if (proc == r->life->proc)
			return true;
	}
	return false;
}

int hr__made_find(struct hr_life_reader *r)
{
	r->n_made = 0;
	for (size_t i = 0; i < r->to->n_workers; i++) {
		const struct hr_worker *w = &r->to->workers[i];

		if (!is_child(r, w->proc))
			continue;
		for (uint32_t k = 0; k < w->n; k++) {
			const struct hr_fetch *f = &r->to->fetches[w->first + k];

			if (!hr_array_reserve(r->made, r->n_made, r->made_room))
				return -ENOMEM;
			r->made[r->n_made++] =
			    (struct hr_made){w->loader, f->batch, f->from, w->first + k};
		}
	}
	if (r->n_made > 0)
		qsort(r->made, r->n_made, sizeof(*r->made), by_batch);
	return 0;
}

/* Returns the latest fetch of the wait's batch before the wait ended; HR_NO_FETCH: none. */
static uint32_t fetch_of(const struct hr_life_reader *r, const struct hr_mark *wait)
{
	struct hr_made key = {wait->loader, wait->batch, wait->to, 0};
	size_t n = hr_array_search(i, r->n_made, by_batch(&r->made[i], &key) <= 0);

	if (n == 0 || r->made[n - 1].loader != wait->loader ||
	    r->made[n - 1].batch != wait->batch || wait->batch == HR_UNKNOWN)
		return HR_NO_FETCH;
	return r->made[n - 1].fetch;
}

int hr__fetch_hide(struct hr_life_reader *r, struct hr_fetch *f, int64_t to)
{
	const struct hr_worker *w = &r->to->workers[f->worker];
	struct hr_interval hidden = {.proc = w->proc,
				     .from = f->placed,
				     .to = to,
				     .tid = w->tid,
				     .ops = f->ops,
				     .use = hr__in_scope(r, w->rank) ? HR_USE_HIDDEN : HR_USE_NONE};

	if (to <= f->placed)
		return 0;
	f->placed = to;
	return hr__scan_add(r->scan, &hidden);
}

static int add_while_fetching(struct hr_life_reader *r, uint32_t fetch, int64_t from, int64_t to)
{
	struct hr_fetch *f = &r->to->fetches[fetch];
	const struct hr_worker *w = &r->to->workers[f->worker];
	struct hr_interval explains = {.proc = w->proc, .tid = w->tid};

	if (hr__fetch_hide(r, f, from) < 0)
		return -ENOMEM;
	f->placed = to;
	return hr__block_add(r, HR_BLOCK_FETCH, from, to, explains, fetch);
}

/* Cuts a wait into blocks where the worker of its batch began and ended batches. */
static int add_wait_for(struct hr_life_reader *r, const struct hr_mark *wait, uint32_t number)
{
	const struct hr_worker *w = &r->to->workers[r->to->fetches[number].worker];
	const struct hr_loop *loop = hr__loop_at(r, wait->loader, wait->from);
	int64_t from = wait->from, loop_from = loop != NULL ? loop->from : INT64_MIN;
	/* the worker's first fetch that ends after `from` */
	uint32_t i = w->first + (uint32_t)hr_array_search(k, number - w->first,
							  r->to->fetches[w->first + k].to <= from);
	int error = 0;

	for (; error == 0 && i <= number && from < wait->to; i++) {
		struct hr_fetch f = r->to->fetches[i];
		bool first = i == w->first || r->to->fetches[i - 1].from < loop_from;
		int64_t begin = f.from < wait->to ? f.from : wait->to;
		int64_t end = f.to < wait->to ? f.to : wait->to;

		if (begin > from) {
			error =
			    hr__block_add_own(r, first ? HR_BLOCK_WORKER_START : HR_BLOCK_PREFETCH,
					      from, begin, HR_NO_FETCH);
			from = begin;
		}
		if (error == 0 && end > from) {
			error = add_while_fetching(r, i, from, end);
			from = end;
		}
	}
	/* The rest is the hand-over. The making of further batches delays it. */
	for (;
	     error == 0 && from < wait->to && wait->to - from > HANDOVER_NS && i < w->first + w->n;
	     i++) {
		struct hr_fetch f = r->to->fetches[i];
		int64_t end = f.to < wait->to ? f.to : wait->to;

		if (f.from >= wait->to)
			break;
		if (f.from > from)
			error = hr__block_add_own(r, HR_BLOCK_HANDOVER, from, f.from, HR_NO_FETCH);
		from = f.from > from ? f.from : from;
		if (error == 0 && end > from)
			error = add_while_fetching(r, i, from, end);
		from = end > from ? end : from;
	}
	return error < 0 || from >= wait->to
		   ? error
		   : hr__block_add_own(r, HR_BLOCK_HANDOVER, from, wait->to, HR_NO_FETCH);
}

static int by_begin(const void *a, const void *b)
{
	const struct hr_wait *x = a, *y = b;

	return (x->from > y->from) - (x->from < y->from);
}

static void note_fetch(const struct hr_life_reader *r, const struct hr_mark *wait, uint32_t fetch)
{
	const struct hr_loop *loop = hr__loop_at(r, wait->loader, wait->from);
	struct hr_wait key = {.from = wait->from}, *found = NULL;

	if (loop != NULL)
		found = bsearch(&key, loop->waits, loop->n, sizeof(key), by_begin);
	if (found != NULL)
		found->fetch = fetch;
}

int hr__wait_add(struct hr_life_reader *r, const struct hr_mark *wait)
{
	uint32_t made = fetch_of(r, wait), own = HR_NO_FETCH;
	struct hr_mark rest = *wait;

	/* Without workers, the thread makes the batch in its wait. */
	if (made == HR_NO_FETCH && !wait->end &&
	    (wait->workers == 0 || (wait->own && wait->used.cpu_ns != HR_UNKNOWN)) &&
	    hr__fetch_add(r, wait, HR_NO_FETCH, &own) < 0)
		return -ENOMEM;
	note_fetch(r, wait, own != HR_NO_FETCH ? own : made);
	if (wait->hidden_to > wait->from) {
		rest.from = wait->hidden_to;
		if (hr__block_add_own(r, HR_BLOCK_HIDDEN, wait->from, rest.from, own) < 0)
			return -ENOMEM;
	}
	if (rest.from >= wait->to)
		return 0;
	if (made != HR_NO_FETCH && !wait->end)
		return add_wait_for(r, &rest, made);
	return hr__block_add_own(r,
				 wait->end	      ? HR_BLOCK_END
				 : own != HR_NO_FETCH ? HR_BLOCK_FETCH
						      : HR_BLOCK_UNKNOWN,
				 rest.from, wait->to, own);
}

const struct hr_wait *hr_block_wait(const struct hr_train_life *life, const struct hr_block *b)
{
	const struct hr_loop *l = b->loop != HR_NO_LOOP ? &life->loops[b->loop] : NULL;
	size_t n = l != NULL ? hr_array_search(i, l->n, l->waits[i].from <= b->from) : 0;

	return n > 0 && b->from < l->waits[n - 1].to ? &l->waits[n - 1] : NULL;
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "query/diagnosis/life_internal.h"

#include <errno.h>
#include <stdlib.h>

#include "common/array.h"

/* ---- gaps ---- */

static int add_gap(struct hr_life_reader *r, int64_t from, int64_t to)
{
	int error = 0;

	while (error == 0 && from < to) {
		int64_t cut = to;

		while (r->at.edge < r->n_edges && r->edges[r->at.edge] <= from)
			r->at.edge++;
		if (r->at.edge < r->n_edges && r->edges[r->at.edge] < to)
			cut = r->edges[r->at.edge];
		error = hr__block_add_own(r, HR_BLOCK_GAP, from, cut, HR_NO_FETCH);
		from = cut;
	}
	return error;
}

/* ---- workers ---- */

static int add_worker(struct hr_life_reader *r, const struct hr_mark *marks, size_t n)
{
	const struct hr_process *p = hr_stream_process(r->q->streams[r->stream].s, marks[0].proc);
	const struct hr_process_marks *own = hr__process_marks(r, marks[0].proc);
	struct hr_train_lives *l = r->to;
	uint32_t fetch;
	int64_t busy_to = INT64_MIN;

	if (own == NULL || !hr_array_reserve(l->workers, l->n_workers, l->workers_room))
		return -ENOMEM;
	l->workers[l->n_workers++] =
	    (struct hr_worker){.stream = r->stream,
			       .proc = marks[0].proc,
			       .parent = p->msg->parent_proc,
			       .first = (uint32_t)l->n_fetches,
			       .rank = p->rank,
			       .number = (int64_t)p->msg->loader_worker_plus1 - 1,
			       .hang = hr__hang_now(own->hang, marks, n, 0),
			       .raised = own->raised};
	for (size_t i = 0; i < n; i++) {
		struct hr_worker *w = &l->workers[l->n_workers - 1];

		if (marks[i].kind != HR_REGION_FETCH || marks[i].from < busy_to)
			continue; /* a nested region: a worker makes one batch at a time */
		busy_to = marks[i].to;
		if (hr__fetch_add(r, &marks[i], (uint32_t)(l->n_workers - 1), &fetch) < 0)
			return -ENOMEM;
		w->tid = marks[i].tid;
		w->n++;
		if (marks[i].open) /* a region that has not ended has no args */
			continue;
		w->loader = marks[i].loader;
		w->number = marks[i].workers == HR_UNKNOWN ? -1 : (int64_t)marks[i].workers;
	}
	return 0;
}

/* ---- lives ---- */

/* Returns the thread with most waits, steps, epochs, optimizer steps and hangs; 0: none. */
static uint32_t training_thread(const struct hr_mark *marks, size_t n)
{
	struct {
		uint32_t tid;
		size_t n;
	} threads[16] = {0};
	size_t best = 0;

	for (size_t i = 0; i < n; i++) {
		uint32_t kind = marks[i].kind;

		if (kind != HR_REGION_INPUT_WAIT && kind != HR_REGION_STEP &&
		    kind != HR_REGION_EPOCH && kind != HR_REGION_OPTIMIZER && kind != HR_MARK_HANG)
			continue;
		for (size_t k = 0; k < 16; k++) {
			if (threads[k].n > 0 && threads[k].tid != marks[i].tid)
				continue;
			threads[k].tid = marks[i].tid;
			best = ++threads[k].n > threads[best].n ? k : best;
			break;
		}
	}
	return threads[best].tid;
}

/* Returns the kind of block that a region becomes; HR_BLOCK_GAP: none. */
static enum hr_block_kind block_kind(const struct hr_mark *m)
{
	switch (m->kind) {
	case HR_REGION_INPUT_WAIT:
		return HR_BLOCK_UNKNOWN;
	case HR_REGION_OPTIMIZER:
		return HR_BLOCK_OPTIMIZER;
	case HR_REGION_CHECKPOINT:
		return HR_BLOCK_CHECKPOINT;
	case HR_REGION_RESTORE:
		return HR_BLOCK_RESTORE;
	case HR_MARK_BACKWARD:
		return HR_BLOCK_BACKWARD;
	case HR_MARK_COLLECTIVE:
		return HR_BLOCK_COLLECTIVE;
	case HR_MARK_CREATES:
		return HR_BLOCK_CREATE;
	default:
		return HR_BLOCK_GAP;
	}
}

static int add_added(struct hr_life_reader *r, struct hr_added added)
{
	struct hr_train_life *life = r->life;

	if (!hr_array_reserve(life->added, life->n_added, life->added_room))
		return -ENOMEM;
	life->added[life->n_added++] = added;
	return 0;
}

/*
 * If page faults occurred before an optimizer's step, adds waits for pages: the time in which the
 * thread neither ran nor waited for something else. (spent.c does the same for fetches.)
 */
static int add_faults(struct hr_life_reader *r, const struct hr_mark *m)
{
	const struct hr_used *u = &m->used;
	uint64_t known = u->cpu_ns + u->core_wait_ns + u->sleep_ns + u->network_ns + u->lock_ns;

	if (u->major_faults == 0 || u->cpu_ns == HR_UNKNOWN || known >= m->since_ns)
		return 0;
	return add_added(r, (struct hr_added){.at = m->from,
					      .ns = m->since_ns - known,
					      .most = u->major_faults * HR_FAULT_NS,
					      .kind = HR_BLOCK_GAP});
}

/* Adds the time between two marks. Before `wait_to`, it is part of a wait (hr_mark.outer). */
static int add_between(struct hr_life_reader *r, int64_t from, int64_t to, int64_t wait_to)
{
	int64_t cut = wait_to < to ? wait_to : to;
	int error = 0;

	if (cut > from) {
		error = hr__block_add_own(r, HR_BLOCK_UNKNOWN, from, cut, HR_NO_FETCH);
		from = cut;
	}
	return error < 0 ? error : add_gap(r, from, to);
}

static int add_blocks(struct hr_life_reader *r, const struct hr_mark *marks, size_t n)
{
	int64_t from = r->life->from, wait_to = from;
	int error = 0;

	for (size_t i = 0; error == 0 && i < n; i++) {
		struct hr_mark m = marks[i];
		enum hr_block_kind kind = block_kind(&m);

		if (m.tid != r->life->tid || kind == HR_BLOCK_GAP)
			continue;
		if (m.added) {
			error = add_added(r, (struct hr_added){.at = m.from,
							       .ns = (uint64_t)(m.to - m.from),
							       .most = UINT64_MAX,
							       .kind = (uint8_t)kind});
			continue;
		}
		if (m.kind == HR_REGION_OPTIMIZER)
			error = add_faults(r, &m);
		if (m.to <= from)
			continue; /* the region lies in another block */
		m.from = m.from > from ? m.from : from;
		if (error == 0)
			error = add_between(r, from, m.from, wait_to);
		if (m.outer) {
			from = m.from;
			wait_to = m.to > wait_to ? m.to : wait_to;
			continue;
		}
		if (error == 0 && m.kind == HR_REGION_INPUT_WAIT)
			error = hr__wait_add(r, &m);
		else if (error == 0)
			error = hr__block_add_own(r, kind, m.from, m.to, HR_NO_FETCH);
		from = m.to;
	}
	return error < 0 ? error : add_between(r, from, r->life->to, wait_to);
}

/* Returns the end of a process or, if it is unknown, the end of its last region. */
static int64_t end_of_process(const struct hr_life_reader *r, const struct hr_process *p,
			      const struct hr_mark *marks, size_t n)
{
	int64_t end = INT64_MIN;

	if (p->msg->end_ns != 0)
		return hr_wall_ns(&r->q->streams[r->stream], p->msg->end_ns);
	for (size_t i = 0; i < n; i++)
		end = marks[i].to > end ? marks[i].to : end;
	return end;
}

static void add_use(struct hr_train_life *life, const struct hr_mark *marks, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		if (marks[i].kind != HR_MARK_BUSY)
			continue;
		life->asked_ns += (double)marks[i].since_ns;
		life->busy_ns += (double)marks[i].since_ns * (double)marks[i].busy_percent / 100;
	}
}

/* Adds the calls of backward() and steps of optimizers in the training thread. -ENOMEM. */
static int add_model(struct hr_train_life *life, const struct hr_mark *marks, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		const struct hr_mark *m = &marks[i];

		if (m->tid != life->tid || m->added || m->open)
			continue;
		life->optimized += m->kind == HR_REGION_OPTIMIZER;
		if (m->kind != HR_MARK_BACKWARD || m->used.cpu_ns == HR_UNKNOWN)
			continue;
		if (!hr_array_reserve(life->backward, life->n_backward, life->backward_room))
			return -ENOMEM;
		life->backward[life->n_backward++] =
		    (struct hr_backward){.from = m->from, .cpu_ns = m->used.cpu_ns};
		life->backward_ns += (uint64_t)(m->to - m->from);
		life->backward_cpu_ns += m->used.cpu_ns;
	}
	return 0;
}

static int add_life(struct hr_life_reader *r, const struct hr_mark *marks, size_t n)
{
	const struct hr_qstream *st = &r->q->streams[r->stream];
	const struct hr_process *p = hr_stream_process(st->s, marks[0].proc);
	const struct hr_process_marks *own = hr__process_marks(r, marks[0].proc);
	uint32_t tid = training_thread(marks, n);
	struct hr_hang hang;
	int64_t from, to;
	int error;

	if (tid == 0)
		return 0;
	if (own == NULL || !hr_array_reserve(r->to->list, r->to->n, r->to->room))
		return -ENOMEM;
	r->life = &r->to->list[r->to->n++];
	from = hr_wall_ns(st, p->msg->start_ns);
	to = end_of_process(r, p, marks, n);
	hang = hr__hang_now(own->hang, marks, n, tid);
	if (hang.at != 0 && p->msg->end_ns == 0 && st->state == HR_STREAM_RUNNING)
		to = (int64_t)r->q->now_ns; /* it hangs until now */
	*r->life = (struct hr_train_life){.stream = r->stream,
					  .tid = tid,
					  .proc = marks[0].proc,
					  .rank = p->rank,
					  .from = from > r->span.from ? from : r->span.from,
					  .to = to < r->span.until ? to : r->span.until,
					  .hang = hang,
					  .raised = own->raised,
					  .updates = own->updates,
					  .padding = own->padding};
	add_use(r->life, marks, n);
	error = add_model(r->life, marks, n);
	if (error == 0)
		error = hr__loops_find(r, marks, n);
	if (error == 0)
		error = hr__made_find(r);
	if (error == 0)
		error = add_blocks(r, marks, n);
	return error == 0 ? hr__own_lines_add(r) : error;
}

/* Workers come first, because waits of training processes refer to the batches of workers. */
int hr__lives_read(struct hr_life_reader *r)
{
	int error = hr__marks_read(r);

	for (int lives = 0; lives < 2; lives++) {
		for (size_t i = 0, n; error == 0 && i < r->n_marks; i += n) {
			const struct hr_process *p =
			    hr_stream_process(r->q->streams[r->stream].s, r->marks[i].proc);

			n = 1;
			while (i + n < r->n_marks && r->marks[i + n].proc == r->marks[i].proc)
				n++;
			if (p == NULL || (p->worker < 0) != lives)
				continue;
			error =
			    lives ? add_life(r, &r->marks[i], n) : add_worker(r, &r->marks[i], n);
		}
	}
	for (size_t i = 0; error == 0 && i < r->to->n_fetches; i++)
		if (r->to->fetches[i].worker != HR_NO_FETCH)
			error = hr__fetch_hide(r, &r->to->fetches[i], r->to->fetches[i].to);
	return error;
}

void hr__life_reader_done(struct hr_life_reader *r)
{
	free(r->marks);
	free(r->steps);
	free(r->epochs);
	free(r->edges);
	free(r->made);
	free(r->line_texts);
	free(r->points);
	free(r->of_process);
	hr_map64_done(&r->line_numbers);
}

void hr__lives_done(struct hr_train_lives *l)
{
	for (size_t i = 0; i < l->n; i++) {
		for (size_t k = 0; k < l->list[i].n_loops; k++)
			free(l->list[i].loops[k].waits);
		free(l->list[i].loops);
		free(l->list[i].added);
		free(l->list[i].own_lines);
		free(l->list[i].backward);
		free(l->list[i].blocks);
	}
	free(l->list);
	free(l->workers);
	free(l->fetches);
	free(l->lines);
	*l = (struct hr_train_lives){0};
}

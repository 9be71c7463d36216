/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads regions and events of all streams, with a thread for each core.
 *
 * A thread reads the regions of a stream, makes the blocks and intervals of its training processes,
 * and then reads the events. A thread that finds no unread stream helps other threads to read
 * events. The last thread of a stream copies the sums that are not zero, and frees the intervals,
 * so that only those of few streams are in memory at a time.
 */
#include <errno.h>
#include <malloc.h>
#include <stdlib.h>

#include "query/diagnosis/diagnosis.h"
#include "query/tables/each.h"
#include "query/diagnosis/life_internal.h"
#include "query/diagnosis/parts_internal.h"

/* The data of one stream. */
struct part {
	struct hr_op_scan scan;
	struct hr_train_lives lives;
	struct hr_items items;
	struct hr_block_ops *ops; /* ops[0] is all zero */
	uint32_t n_ops;
	uint32_t first_ops; /* index in the diagnosis's `ops` of the first element */
	bool open;	    /* threads may help to read its events */
	unsigned users;	    /* number of threads that read them now */
};

struct parts_reading {
	struct hr_diagnosis *d;
	struct part *parts;
	struct hr_job_span *spans;
	pthread_mutex_t lock;
	pthread_cond_t changed;
	size_t next;	/* index of the next stream whose regions must be read */
	size_t reading; /* number of streams whose regions are being read */
	struct hr_samples samples;
	int error;
};

/* ---- the end of a stream ---- */

static uint64_t io_of(const struct hr_scan_ops *o)
{
	uint64_t ns = 0;

	for (unsigned i = 0; i < HR_SCAN_GROUPS; i++)
		ns += o->ns[i];
	return ns;
}

static void fold_fetches(struct part *p)
{
	for (size_t i = 0; i < p->lives.n_fetches; i++) {
		struct hr_fetch *f = &p->lives.fetches[i];

		f->io_ns = io_of(&p->scan.ops[f->ops]);
		f->cached_ns = p->scan.ops[f->ops].cached_ns;
	}
	for (size_t i = 0; i < p->lives.n; i++) {
		const struct hr_train_life *life = &p->lives.list[i];

		for (size_t k = 0; k < life->n; k++) {
			const struct hr_block *b = &life->blocks[k];

			if (b->fetch == HR_NO_FETCH)
				continue;
			p->lives.fetches[b->fetch].io_ns += io_of(&p->scan.ops[b->ops]);
			p->lives.fetches[b->fetch].cached_ns += p->scan.ops[b->ops].cached_ns;
		}
	}
}

/* Whether the parts of a block depend on operations, and it has some. */
static bool has_ops(const struct hr_block *b, const struct hr_scan_ops *o)
{
	uint64_t any = (uint64_t)o->runtime_end;

	if (hr__is_whole(b->kind) && b->phase != HR_PHASE_START)
		return false;
	for (unsigned i = 0; i < HR_SCAN_GROUPS; i++)
		any |= o->ns[i] | o->others[i];
	return any != 0;
}

static void keep_ops(struct part *p, struct hr_block *b)
{
	const struct hr_scan_ops *o = &p->scan.ops[b->ops];
	struct hr_block_ops *to;

	if (!has_ops(b, o)) {
		b->ops = 0;
		return;
	}
	b->ops = p->n_ops;
	to = &p->ops[p->n_ops++];
	for (unsigned i = 0; i < HR_SCAN_GROUPS; i++) {
		to->ns[i] = o->ns[i];
		to->others[i] = o->others[i];
	}
	to->runtime_end = o->runtime_end;
}

/* -ENOMEM. */
static int fold_blocks(struct part *p)
{
	size_t n = 1;

	for (size_t i = 0; i < p->lives.n; i++)
		for (size_t k = 0; k < p->lives.list[i].n; k++)
			n += has_ops(&p->lives.list[i].blocks[k],
				     &p->scan.ops[p->lives.list[i].blocks[k].ops]);
	p->ops = calloc(n, sizeof(*p->ops));
	if (p->ops == NULL)
		return -ENOMEM;
	p->n_ops = 1;
	for (size_t i = 0; i < p->lives.n; i++) {
		struct hr_train_life *life = &p->lives.list[i];
		void *less = realloc(life->blocks, (life->n + 1) * sizeof(*life->blocks));

		life->blocks = less != NULL ? less : life->blocks;
		for (size_t k = 0; k < life->n; k++)
			keep_ops(p, &life->blocks[k]);
	}
	return 0;
}

static int end_part(struct part *p)
{
	int r;

	fold_fetches(p);
	r = fold_blocks(p);
	hr__scan_done(&p->scan);
	hr__items_end(&p->items);
	return r;
}

/* ---- threads ---- */

/* Returns a stream with work to do, or NULL. `fresh`: first read the regions of this stream. */
static struct part *take(struct parts_reading *r, bool *fresh)
{
	struct part *p = NULL;

	pthread_mutex_lock(&r->lock);
	while (p == NULL && r->error == 0) {
		*fresh = r->next < r->d->q->n_streams;
		if (*fresh) {
			p = &r->parts[r->next++];
			r->reading++;
			break;
		}
		for (size_t i = 0; p == NULL && i < r->d->q->n_streams; i++)
			if (r->parts[i].open && hr__scan_more(&r->parts[i].scan))
				p = &r->parts[i];
		if (p != NULL)
			p->users++;
		else if (r->reading == 0)
			break;
		else
			pthread_cond_wait(&r->changed, &r->lock);
	}
	pthread_mutex_unlock(&r->lock);
	return p;
}

static void fail(struct parts_reading *r, int error)
{
	pthread_mutex_lock(&r->lock);
	r->error = r->error == 0 ? error : r->error;
	pthread_cond_broadcast(&r->changed);
	pthread_mutex_unlock(&r->lock);
}

static int read_regions(struct parts_reading *r, struct hr_life_reader *reader, struct part *p)
{
	int error;

	reader->stream = (uint32_t)(p - r->parts);
	reader->scan = &p->scan;
	reader->to = &p->lives;
	reader->span = r->spans[r->d->jobs[reader->stream]];
	p->scan.stream = reader->stream;
	if (r->d->q->streams[reader->stream].s->added_to != NULL) /* not part of the recording */
		return hr__scan_begin(r->d->q, &p->scan);
	error = hr__lives_read(reader);
	r->d->saves[reader->stream] = reader->saves;
	return error < 0 ? error : hr__scan_begin(r->d->q, &p->scan);
}

static void open_part(struct parts_reading *r, struct part *p)
{
	pthread_mutex_lock(&r->lock);
	r->reading--;
	p->open = true;
	p->users++;
	pthread_cond_broadcast(&r->changed);
	pthread_mutex_unlock(&r->lock);
}

static int leave_part(struct parts_reading *r, struct hr_scan_worker *w, struct part *p)
{
	bool last;
	int error;

	pthread_mutex_lock(&r->lock);
	error = hr__items_merge(&p->items, &w->items);
	last = --p->users == 0;
	p->open = p->open && !last;
	pthread_mutex_unlock(&r->lock);
	return error == 0 && last ? end_part(p) : error;
}

static void *read_some(void *data)
{
	struct parts_reading *r = data;
	struct hr_life_reader reader = {.q = r->d->q, .scope = &r->d->scope};
	struct hr_scan_worker worker;
	struct part *p;
	bool fresh;
	int error = 0;

	hr__scan_worker_init(r->d->q, &worker);
	while (error == 0 && (p = take(r, &fresh)) != NULL) {
		if (fresh) {
			error = read_regions(r, &reader, p);
			if (error < 0)
				break;
			open_part(r, p);
		}
		error = hr__scan_work(&p->scan, &worker);
		if (error == 0)
			error = leave_part(r, &worker, p);
	}
	if (error < 0)
		fail(r, error);
	hr__life_reader_done(&reader);
	pthread_mutex_lock(&r->lock);
	if (r->error == 0)
		r->error = hr__samples_merge(&r->samples, &worker.samples);
	pthread_mutex_unlock(&r->lock);
	hr__scan_worker_done(&worker);
	return NULL;
}

/* ---- all streams together ---- */

/* Allocates the diagnosis's lists, and computes where each stream begins in them. */
static int make_room(struct hr_diagnosis *d, struct part *parts)
{
	struct hr_train_lives *l = &d->lives;
	size_t n_items = 0, n_ops = 1;

	d->first = calloc(d->q->n_streams + 1, sizeof(*d->first));
	if (d->first == NULL)
		return -ENOMEM;
	for (size_t i = 0; i < d->q->n_streams; i++) {
		struct part *p = &parts[i];

		l->n += p->lives.n;
		l->n_workers += p->lives.n_workers;
		l->n_fetches += p->lives.n_fetches;
		l->n_lines += p->lives.n_lines;
		n_items += p->items.n;
		p->first_ops = (uint32_t)n_ops - 1;
		n_ops += p->n_ops > 0 ? p->n_ops - 1 : 0;
		d->first[i + 1] = (struct hr_stream_firsts){l->n, l->n_workers, l->n_fetches,
							    n_items, l->n_lines};
	}
	l->list = malloc((l->n + 1) * sizeof(*l->list));
	l->workers = malloc((l->n_workers + 1) * sizeof(*l->workers));
	l->fetches = malloc((l->n_fetches + 1) * sizeof(*l->fetches));
	l->lines = malloc((l->n_lines + 1) * sizeof(*l->lines));
	d->items = malloc((n_items + 1) * sizeof(*d->items));
	d->ops = malloc(n_ops * sizeof(*d->ops));
	if (l->list == NULL || l->workers == NULL || l->fetches == NULL || l->lines == NULL ||
	    d->items == NULL || d->ops == NULL) {
		l->n = 0; /* r.parts still own the elements */
		return -ENOMEM;
	}
	d->ops[0] = (struct hr_block_ops){0};
	return 0;
}

/* Changes indexes in the lists of a stream to indexes in the diagnosis's lists. */
static void renumber(struct hr_train_life *life, uint32_t first_fetch, uint32_t first_ops)
{
	for (size_t k = 0; k < life->n; k++) {
		struct hr_block *b = &life->blocks[k];

		b->fetch += b->fetch != HR_NO_FETCH ? first_fetch : 0;
		b->ops += b->ops != 0 ? first_ops : 0;
	}
	for (size_t i = 0; i < life->n_loops; i++)
		for (size_t k = 0; k < life->loops[i].n; k++)
			if (life->loops[i].waits[k].fetch != HR_NO_FETCH)
				life->loops[i].waits[k].fetch += first_fetch;
}

static void part_done(struct part *p)
{
	hr__scan_done(&p->scan);
	hr__lives_done(&p->lives);
	hr__items_done(&p->items);
	free(p->ops);
	*p = (struct part){0};
}

/* Copies the data of a stream into the diagnosis's lists. */
static int move_part(void *data, size_t stream)
{
	const struct parts_reading *r = data;
	struct hr_diagnosis *d = r->d;
	struct part *p = &r->parts[stream];
	const struct hr_stream_firsts *at = &d->first[stream];
	struct hr_train_lives *l = &d->lives, *from = &p->lives;

	for (size_t i = 0; i < from->n; i++) {
		renumber(&from->list[i], (uint32_t)at->fetch, p->first_ops);
		l->list[at->life + i] = from->list[i];
	}
	for (size_t i = 0; i < from->n_workers; i++) {
		from->workers[i].first += (uint32_t)at->fetch;
		l->workers[at->worker + i] = from->workers[i];
	}
	for (size_t i = 0; i < from->n_fetches; i++) {
		if (from->fetches[i].worker != HR_NO_FETCH)
			from->fetches[i].worker += (uint32_t)at->worker;
		from->fetches[i].first_line += (uint32_t)at->line;
		l->fetches[at->fetch + i] = from->fetches[i];
	}
	if (from->n_lines > 0)
		memcpy(&l->lines[at->line], from->lines, from->n_lines * sizeof(*l->lines));
	if (p->items.n > 0)
		memcpy(&d->items[at->item], p->items.list, p->items.n * sizeof(*d->items));
	if (p->n_ops > 1)
		memcpy(&d->ops[p->first_ops + 1], &p->ops[1], (p->n_ops - 1) * sizeof(*d->ops));
	from->n = 0;
	part_done(p);
	return 0;
}

int hr__read_all(struct hr_diagnosis *d)
{
	struct parts_reading r = {.d = d,
				  .lock = PTHREAD_MUTEX_INITIALIZER,
				  .changed = PTHREAD_COND_INITIALIZER,
				  .parts = calloc(d->q->n_streams + 1, sizeof(*r.parts))};

	r.error = r.parts != NULL ? hr__spans_read(d, &r.spans) : -ENOMEM;
	if (r.error == 0)
		hr_threads_run(d->q->threads, read_some, &r);
	if (r.error == 0)
		r.error = make_room(d, r.parts);
	if (r.error == 0)
		r.error = hr_each(d->q->threads, d->q->n_streams, move_part, &r);
	for (size_t i = 0; r.parts != NULL && i < d->q->n_streams; i++)
		part_done(&r.parts[i]);
	free(r.parts);
	free(r.spans);
	/* Returns freed memory in the heaps of the threads, which larger lists cannot use. */
	malloc_trim(0);
	d->samples = r.samples;
	pthread_mutex_destroy(&r.lock);
	pthread_cond_destroy(&r.changed);
	return r.error;
}

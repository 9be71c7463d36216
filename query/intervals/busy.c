/* SPDX-License-Identifier: Apache-2.0 */
/* Assigns batches of events to threads, and adds up their intervals in order. */
#include <errno.h>
#include <stdlib.h>

#include "common/array.h"
#include "query/intervals/during.h"

/*
 * The intervals of a lane before its cut: those with which events of batches that are not added up
 * yet may overlap. (The cut is the latest end of such an event.)
 */
struct pending_spans {
	struct hr_span *spans;
	size_t n; /* spans[0] to spans[n - 1] do not overlap */
	/* The spans from n to `used` are pieces. Only spans of different pieces overlap. */
	size_t used;
	size_t room;
	size_t *ends; /* index in `spans` at which each piece ends */
	size_t n_pieces, pieces_room;
	uint64_t busy_ns; /* union of the intervals after the cut */
	struct hr_busy_sums sums;
};

struct hr_busy {
	struct hr_query *q;
	struct hr_busy_keys keys;
	struct hr_busy_lanes lanes;
	struct hr_busy_batch *batches; /* sorted in the order in which they are added up */
	size_t n_batches;
	struct hr_busy_part *parts; /* results; batch i uses parts[i % n_parts] */
	size_t n_parts;

	pthread_mutex_t lock;
	pthread_cond_t moved; /* signals changes of `added` and `error` */
	size_t next;	      /* index of the next batch to read */
	size_t added;	      /* number of batches that are added up */
	bool adding;	      /* a thread adds up batches, and uses the members below */
	int error;

	/* One element for each lane; all zero before its first event. */
	struct pending_spans *pending;
	/* For each stream, the latest end of an event that is not added up yet. */
	int64_t *last_ns;
	struct hr_span *room[2];
	size_t room_n[2];
	struct hr_span_run *runs;
	size_t runs_room;
	struct hr_busy_row *rows;
	size_t n_rows;
};

/* ---- set up ---- */

static int64_t wall_ns(const struct hr_stream *s, uint64_t boot_ns)
{
	int64_t boot = boot_ns > INT64_MAX ? INT64_MAX : (int64_t)boot_ns, wall;

	return __builtin_add_overflow(boot, s->real_minus_boot_ns, &wall) ? INT64_MAX : wall;
}

static int latest_first(const void *a, const void *b)
{
	const struct hr_busy_batch *x = a, *y = b;

	if (x->last_ns != y->last_ns)
		return x->last_ns > y->last_ns ? -1 : 1;
	return x->stream != y->stream ? (x->stream > y->stream) - (x->stream < y->stream)
				      : (x->batch > y->batch) - (x->batch < y->batch);
}

static int list_batches(struct hr_busy *b, const struct hr_busy_args *args, bool *used)
{
	struct hr_query *q = b->q;
	bool all = q->no_prune || b->lanes.during != NULL;
	size_t total = 0;

	for (size_t i = 0; i < q->n_streams; i++)
		total += q->streams[i].s->n_batches;
	b->batches = malloc((total + 1) * sizeof(*b->batches));
	b->last_ns = malloc((q->n_streams + 1) * sizeof(*b->last_ns));
	if (b->batches == NULL || b->last_ns == NULL)
		return -ENOMEM;
	for (uint32_t i = 0; i < q->n_streams; i++) {
		const struct hr_stream *s = q->streams[i].s;

		used[i] =
		    hr__busy_stream_has(s, args->rank) && (all || hr_prune_stream(&q->prune, s));
		for (uint32_t k = 0; used[i] && k < s->n_batches; k++) {
			if (hr__busy_batch_has(s, &s->batches[k], args->rank) &&
			    (all || hr_prune_batch(&q->prune, s, &s->batches[k])))
				b->batches[b->n_batches++] = (struct hr_busy_batch){
				    .stream = i,
				    .batch = k,
				    .last_ns = wall_ns(s, s->batches[k].last_ns)};
		}
		b->last_ns[i] = INT64_MIN;
	}
	if (b->n_batches > 0)
		qsort(b->batches, b->n_batches, sizeof(*b->batches), latest_first);
	for (size_t i = b->n_batches; i-- > 0;) {
		struct hr_busy_batch *batch = &b->batches[i];

		batch->next_last_ns = b->last_ns[batch->stream];
		b->last_ns[batch->stream] = batch->last_ns;
	}
	atomic_fetch_add(&q->batches, total);
	atomic_fetch_add(&q->batches_pruned, total - b->n_batches);
	return 0;
}

static int make_lanes(struct hr_busy *b, const struct hr_busy_args *args, const bool *used)
{
	int r = hr__busy_keys_make(&b->keys, b->q, args, used);
	size_t n;

	if (r < 0)
		return r;
	b->lanes.keys = &b->keys;
	b->lanes.scope = args->scope;
	b->lanes.classes = args->by & HR_BUSY_CLASS ? HR_BUSY_CLASSES : 1;
	if (b->lanes.during != NULL)
		r = hr__during_place(b->lanes.during, b->q, &b->keys);
	if (r < 0)
		return r;
	for (unsigned op = 0; op < HR_OP_MAX; op++) {
		uint8_t class = hr_op_info((uint16_t)op)->class;

		b->lanes.class_of_op[op] = class < HR_BUSY_CLASSES ? class : HR_CLASS_NONE;
	}
	n = b->keys.n * b->lanes.classes;
	b->pending = calloc(n + 1, sizeof(*b->pending));
	b->rows = malloc((n + 1) * sizeof(*b->rows));
	return b->pending == NULL || b->rows == NULL ? -ENOMEM : 0;
}

int hr__busy_new(struct hr_query *q, const struct hr_busy_args *args, struct hr_during *during,
		 struct hr_busy **ret)
{
	struct hr_busy *b = calloc(1, sizeof(*b));
	bool *used = calloc(q->n_streams + 1, sizeof(*used));
	int r = -ENOMEM;

	if (b == NULL || used == NULL) {
		free(b);
		free(used);
		hr__during_free(during);
		return r;
	}
	b->q = q;
	b->lanes.during = during;
	pthread_mutex_init(&b->lock, NULL);
	pthread_cond_init(&b->moved, NULL);
	b->n_parts = 2 * (size_t)q->threads + 2;
	b->parts = calloc(b->n_parts, sizeof(*b->parts));
	if (b->parts != NULL)
		r = list_batches(b, args, used);
	if (r == 0)
		r = make_lanes(b, args, used);
	free(used);
	if (r == 0)
		*ret = b;
	else
		hr__busy_free(b);
	return r;
}

void hr__busy_free(struct hr_busy *b)
{
	if (b == NULL)
		return;
	for (size_t i = 0; b->pending != NULL && i < b->keys.n * b->lanes.classes; i++) {
		free(b->pending[i].spans);
		free(b->pending[i].ends);
	}
	for (size_t i = 0; b->parts != NULL && i < b->n_parts; i++) {
		free(b->parts[i].spans);
		free(b->parts[i].pieces);
	}
	hr__during_free(b->lanes.during);
	hr__busy_keys_done(&b->keys);
	free(b->pending);
	free(b->parts);
	free(b->batches);
	free(b->last_ns);
	free(b->room[0]);
	free(b->room[1]);
	free(b->runs);
	free(b->rows);
	pthread_mutex_destroy(&b->lock);
	pthread_cond_destroy(&b->moved);
	free(b);
}

size_t hr__busy_batches(const struct hr_busy *b)
{
	return b->n_batches;
}

const struct hr_busy_keys *hr__busy_keys(const struct hr_busy *b)
{
	return &b->keys;
}

/* ---- pending intervals ---- */

static bool rooms_fit(struct hr_busy *b, size_t n)
{
	return hr_array_fit(b->room[0], n, b->room_n[0]) &&
	       hr_array_fit(b->room[1], n, b->room_n[1]);
}

static size_t cut_off(struct hr_busy *b, struct pending_spans *p, struct hr_span *spans, size_t n,
		      int64_t cut)
{
	if (b->lanes.during != NULL)
		hr__during_busy(b->lanes.during, (uint32_t)(p - b->pending), spans, n, cut);
	return hr_spans_cut(spans, n, cut, &p->busy_ns);
}

/* Unites all intervals of a lane. Then adds up the time after the cut, and removes it. */
static int settle(struct hr_busy *b, struct pending_spans *p, int64_t cut)
{
	size_t n_runs = 0, at = p->n;

	if (!rooms_fit(b, p->used) || !hr_array_fit(b->runs, p->n_pieces + 1, b->runs_room))
		return -ENOMEM;
	b->runs[n_runs++] = (struct hr_span_run){p->spans, p->n};
	for (size_t i = 0; i < p->n_pieces; at = p->ends[i++])
		b->runs[n_runs++] = (struct hr_span_run){p->spans + at, p->ends[i] - at};
	p->n = hr_spans_unite(hr_spans_merge(b->runs, n_runs, b->room), p->spans);
	p->n = p->used = cut_off(b, p, p->spans, p->n, cut);
	p->n_pieces = 0;
	return 0;
}

/*
 * Does the same as settle() and adds a piece, whose memory it overwrites. Usually, only the end of
 * a long piece overlaps other spans, so the rest is copied without a merge.
 */
static int settle_with(struct hr_busy *b, struct pending_spans *p, struct hr_span *piece, size_t n,
		       int64_t cut)
{
	size_t below = p->n > 0 ? hr_spans_before(piece, n, p->spans[0].start) : n;
	size_t above = 0;

	if (!rooms_fit(b, p->n + n - below))
		return -ENOMEM;
	if (p->n > 0) {
		struct hr_span_run runs[2] = {{p->spans, p->n}, {piece + below, n - below}};

		above = hr_spans_unite(hr_spans_merge(runs, 2, b->room), b->room[0]);
		above = cut_off(b, p, b->room[0], above, cut);
	}
	below = cut_off(b, p, piece, below, cut);
	if (!hr_array_fit(p->spans, below + above, p->room))
		return -ENOMEM;
	if (below > 0)
		memcpy(p->spans, piece, below * sizeof(*piece));
	if (above > 0)
		memcpy(p->spans + below, b->room[0], above * sizeof(*piece));
	p->n = p->used = below + above;
	return 0;
}

/*
 * Adds a piece to a lane. Merges its pieces when they have as many spans as the united part, so
 * that the work is proportional to the number of spans.
 */
static int add_piece(struct hr_busy *b, struct pending_spans *p, struct hr_span *piece, size_t n,
		     int64_t cut)
{
	if (p->n_pieces == 0 && n >= p->n)
		return settle_with(b, p, piece, n, cut);
	if (!hr_array_fit(p->spans, p->used + n, p->room) ||
	    !hr_array_reserve(p->ends, p->n_pieces, p->pieces_room))
		return -ENOMEM;
	memcpy(p->spans + p->used, piece, n * sizeof(*piece));
	p->used += n;
	p->ends[p->n_pieces++] = p->used;
	return p->used - p->n >= p->n ? settle(b, p, cut) : 0;
}

/* Returns the cut of a key: the latest one of all streams with processes of this key. */
static int64_t cut_of(const struct hr_busy *b, const struct hr_busy_key *key)
{
	int64_t cut = INT64_MIN;

	for (uint32_t i = 0; i < key->n_streams; i++) {
		int64_t last_ns = b->last_ns[b->keys.streams[key->first_stream + i]];

		cut = last_ns > cut ? last_ns : cut;
	}
	return cut;
}

static int busy_add(struct hr_busy *b, const struct hr_busy_batch *batch, struct hr_busy_part *part)
{
	int r = 0;

	b->last_ns[batch->stream] = batch->next_last_ns;
	for (size_t i = 0; r == 0 && i < part->n_pieces; i++) {
		const struct hr_busy_piece *piece = &part->pieces[i];
		struct pending_spans *p = &b->pending[piece->lane];

		if (p->sums.count == 0)
			p->sums = HR_BUSY_NO_SUMS;
		hr__busy_sums_add(&p->sums, &piece->sums);
		if (piece->n > 0)
			r = add_piece(b, p, part->spans + piece->first, piece->n,
				      cut_of(b, &b->keys.list[piece->lane / b->lanes.classes]));
	}
	return r;
}

static int busy_finish(struct hr_busy *b)
{
	for (size_t i = 0; i < b->keys.n * b->lanes.classes; i++) {
		const struct hr_busy_key *key = &b->keys.list[i / b->lanes.classes];
		struct pending_spans *p = &b->pending[i];

		if (p->sums.count == 0 || key->rank == HR_BUSY_OTHER_RANK)
			continue;
		if (settle(b, p, INT64_MIN) < 0)
			return -ENOMEM;
		b->rows[b->n_rows++] = (struct hr_busy_row){
		    .of = {.st = key->st},
		    .proc = key->proc,
		    .rank = key->rank,
		    .worker = key->worker,
		    .class = b->lanes.classes > 1 ? hr_class_name((unsigned)(i % b->lanes.classes))
						  : NULL,
		    .busy_ns = p->busy_ns,
		    .dur_ns = p->sums.dur_ns,
		    .count = p->sums.count,
		    .first_ns = p->sums.first_ns,
		    .last_ns = p->sums.last_ns,
		};
	}
	return 0;
}

/* ---- turns ---- */

/*
 * Waits until the next batch can have a result, and reserves the batch for this thread. False: no
 * batch is left, or an error occurred.
 */
static bool busy_take_turn(struct hr_busy *b, size_t *ret)
{
	bool some;

	pthread_mutex_lock(&b->lock);
	while (b->error == 0 && b->next < b->n_batches && b->next - b->added >= b->n_parts)
		pthread_cond_wait(&b->moved, &b->lock);
	if (b->error == 0 && atomic_load_explicit(&b->q->interrupted, memory_order_relaxed)) {
		b->error = -EINTR;
		pthread_cond_broadcast(&b->moved);
	}
	some = b->error == 0 && b->next < b->n_batches;
	*ret = some ? b->next++ : 0;
	pthread_mutex_unlock(&b->lock);
	return some;
}

/* Adds up the batches that were read. Call it with the lock, which is released meanwhile. */
static void add_ready(struct hr_busy *b)
{
	b->adding = true;
	while (b->error == 0 && b->added < b->n_batches && b->parts[b->added % b->n_parts].ready) {
		struct hr_busy_part *part = &b->parts[b->added % b->n_parts];
		int r;

		pthread_mutex_unlock(&b->lock);
		r = busy_add(b, &b->batches[b->added], part);
		pthread_mutex_lock(&b->lock);
		part->ready = false;
		b->error = b->error != 0 ? b->error : r;
		b->added++;
		pthread_cond_broadcast(&b->moved);
	}
	b->adding = false;
}

static bool hand_in(struct hr_busy *b, size_t number, int error)
{
	bool last;

	pthread_mutex_lock(&b->lock);
	b->parts[number % b->n_parts].ready = error == 0;
	if (error != 0 && b->error == 0) {
		b->error = error;
		pthread_cond_broadcast(&b->moved);
	}
	last = !b->adding && b->added < b->n_batches;
	if (last)
		add_ready(b);
	last = last && b->error == 0 && b->added == b->n_batches;
	pthread_mutex_unlock(&b->lock);
	return last;
}

int hr__busy_work(struct hr_busy *b, struct hr_busy_worker *w)
{
	bool last = false;
	size_t number;
	int r;

	while (!last && busy_take_turn(b, &number)) {
		r = hr__busy_batch_read(b->q, &b->lanes, &b->batches[number], w,
					&b->parts[number % b->n_parts]);
		atomic_fetch_add_explicit(&b->q->batches_read, 1, memory_order_relaxed);
		last = hand_in(b, number, r);
	}
	if (last) {
		r = busy_finish(b);
		if (r == 0 && b->lanes.during != NULL)
			hr__during_sum(b->lanes.during);
		return r < 0 ? r : 1;
	}
	pthread_mutex_lock(&b->lock);
	r = b->error;
	pthread_mutex_unlock(&b->lock);
	return r;
}

size_t hr__busy_pending(const struct hr_busy *b)
{
	size_t n = 0;

	for (size_t i = 0; i < b->keys.n * b->lanes.classes; i++)
		n += b->pending[i].room;
	return n;
}

size_t hr__busy_rows(const struct hr_busy *b, const struct hr_busy_row **ret)
{
	*ret = b->rows;
	return b->n_rows;
}

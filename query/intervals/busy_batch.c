/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads one batch of events, and unites the intervals of each lane. The events of a task are
 * adjacent and almost sorted, so each task makes a run, and only runs are merged.
 */
#include <errno.h>
#include <stdlib.h>

#include "common/array.h"
#include "query/intervals/during.h"
#include "store/batch_reader.h"

#define ALWAYS_INLINE static inline __attribute__((always_inline))

struct span_run {
	uint32_t lane;
	uint32_t first, n; /* index and number of its spans in hr_busy_worker.spans */
	struct hr_busy_sums sums;
};

struct hr_busy_worker {
	struct hr_batch_reader reader;
	struct hr_span *spans, *room[2]; /* HR_BATCH_EVENTS elements each */
	uint8_t *classes;		 /* the class of each event, or HR_BUSY_NO_LANE */
	/* `classes`, or NULL: each event is in the lane of its task. */
	const uint8_t *counted;
	struct span_run *runs;
	size_t n_runs, runs_room;
	struct hr_span_run *merge;
	size_t merge_room;
};

struct hr_busy_worker *hr__busy_worker_new(void)
{
	struct hr_busy_worker *w = calloc(1, sizeof(*w));

	if (w == NULL)
		return NULL;
	w->spans = malloc(HR_BATCH_EVENTS * sizeof(*w->spans));
	w->room[0] = malloc(HR_BATCH_EVENTS * sizeof(*w->room[0]));
	w->room[1] = malloc(HR_BATCH_EVENTS * sizeof(*w->room[1]));
	w->classes = malloc(HR_BATCH_EVENTS);
	if (w->spans != NULL && w->room[0] != NULL && w->room[1] != NULL && w->classes != NULL)
		return w;
	hr__busy_worker_free(w);
	return NULL;
}

void hr__busy_worker_free(struct hr_busy_worker *w)
{
	if (w == NULL)
		return;
	hr_batch_reader_done(&w->reader);
	free(w->spans);
	free(w->room[0]);
	free(w->room[1]);
	free(w->classes);
	free(w->runs);
	free(w->merge);
	free(w);
}

void hr__busy_sums_add(struct hr_busy_sums *to, const struct hr_busy_sums *from)
{
	to->count += from->count;
	to->dur_ns += from->dur_ns;
	to->first_ns = from->first_ns < to->first_ns ? from->first_ns : to->first_ns;
	to->last_ns = from->last_ns > to->last_ns ? from->last_ns : to->last_ns;
}

/* ---- which rows ---- */

/* Returns each event's class, or HR_BUSY_NO_LANE. NULL: all are in the lanes of their tasks. */
static const uint8_t *classify(const struct hr_busy_lanes *l, const struct hr_columns *c,
			       struct hr_busy_worker *w)
{
	uint16_t want = l->scope == HR_BUSY_RUNTIME ? HR_EV_SCOPE_RUNTIME : 0, differ = 0;
	uint8_t *classes = w->classes;

	for (uint32_t i = 0; c->bits != NULL && i < c->count; i++)
		differ |= c->bits[i] ^ want;
	differ &= HR_EV_SCOPE_RUNTIME;
	if (differ == 0 && l->classes == 1)
		return NULL;
	for (uint32_t i = 0; i < c->count; i++)
		classes[i] = l->classes == HR_BUSY_CLASSES ? l->class_of_op[c->op[i]] : 0;
	for (uint32_t i = 0; differ != 0 && i < c->count; i++) {
		if ((c->bits[i] ^ want) & HR_EV_SCOPE_RUNTIME)
			classes[i] = HR_BUSY_NO_LANE;
	}
	return classes;
}

/* Copies the intervals of the events [first, end) with this class; `classes` NULL: of all. */
ALWAYS_INLINE struct span_run busy_batch_take(const struct hr_columns *c, uint64_t offset_ns,
					      uint32_t first, uint32_t end, const uint8_t *classes,
					      uint8_t class, struct hr_span *to)
{
	const uint64_t *start_ns = c->start_ns, *dur_ns = c->dur_ns;
	struct hr_busy_sums sums = HR_BUSY_NO_SUMS;
	uint32_t n = 0;

	for (uint32_t i = first; i < end; i++) {
		uint64_t start = start_ns[i] + offset_ns, dur = dur_ns[i];
		struct hr_span span = {(int64_t)start, (int64_t)(start + dur)};

		if (classes != NULL && classes[i] != class)
			continue;
		sums.count++;
		sums.dur_ns += dur;
		sums.first_ns = span.start < sums.first_ns ? span.start : sums.first_ns;
		sums.last_ns = span.end > sums.last_ns ? span.end : sums.last_ns;
		to[n] = span;
		n += span.end > span.start;
	}
	return (struct span_run){.n = n, .sums = sums};
}

static int add_run(struct hr_busy_worker *w, uint32_t lane, uint32_t *used, struct span_run run)
{
	if (run.sums.count == 0)
		return 0;
	if (!hr_array_reserve(w->runs, w->n_runs, w->runs_room))
		return -ENOMEM;
	hr_spans_sort(w->spans + *used, run.n);
	run.lane = lane;
	run.first = *used;
	*used += run.n;
	w->runs[w->n_runs++] = run;
	return 0;
}

static uint32_t rows_end(const struct hr_columns *c, uint32_t first)
{
	const uint32_t *next = &c->task[first + 1];

	return first + 1 +
	       (uint32_t)hr_array_search(i, c->count - first - 1, next[i] == c->task[first]);
}

static int find_runs(const struct hr_busy_lanes *l, const struct hr_query *q, uint32_t stream,
		     const struct hr_columns *c, struct hr_busy_worker *w)
{
	uint64_t offset_ns = (uint64_t)q->streams[stream].s->real_minus_boot_ns;
	const uint8_t *classes = classify(l, c, w);
	uint32_t used = 0;
	int r = 0;

	w->counted = classes;
	w->n_runs = 0;
	for (uint32_t first = 0, end; r == 0 && first < c->count; first = end) {
		const struct hr_task *task = &c->tasks[c->task[first]];
		uint32_t lane = hr__busy_key(l->keys, q, stream, task->proc) * l->classes;
		uint32_t present = 0;

		end = rows_end(c, first);
		if (classes == NULL) {
			r = add_run(
			    w, lane, &used,
			    busy_batch_take(c, offset_ns, first, end, NULL, 0, w->spans + used));
			continue;
		}
		for (uint32_t i = first; i < end; i++)
			present |= classes[i] != HR_BUSY_NO_LANE ? 1u << classes[i] : 0;
		for (unsigned k = 0; r == 0 && k < l->classes; k++) {
			if (present >> k & 1)
				r = add_run(w, lane + k, &used,
					    busy_batch_take(c, offset_ns, first, end, classes,
							    (uint8_t)k, w->spans + used));
		}
	}
	return r;
}

/* ---- lanes ---- */

static int by_lane(const void *a, const void *b)
{
	const struct span_run *x = a, *y = b;

	if (x->lane != y->lane)
		return x->lane < y->lane ? -1 : 1;
	return (x->first > y->first) - (x->first < y->first);
}

static int make_piece(struct hr_busy_worker *w, const struct span_run *runs, size_t n,
		      struct hr_busy_part *to)
{
	size_t done = to->n_pieces > 0
			  ? to->pieces[to->n_pieces - 1].first + to->pieces[to->n_pieces - 1].n
			  : 0;
	struct hr_busy_piece piece = {runs[0].lane, (uint32_t)done, 0, HR_BUSY_NO_SUMS};

	if (!hr_array_reserve(to->pieces, to->n_pieces, to->room) ||
	    !hr_array_fit(w->merge, n, w->merge_room))
		return -ENOMEM;
	for (size_t i = 0; i < n; i++) {
		w->merge[i] = (struct hr_span_run){w->spans + runs[i].first, runs[i].n};
		hr__busy_sums_add(&piece.sums, &runs[i].sums);
	}
	piece.n = (uint32_t)hr_spans_unite(hr_spans_merge(w->merge, n, w->room), to->spans + done);
	to->pieces[to->n_pieces++] = piece;
	return 0;
}

static int make_pieces(struct hr_busy_worker *w, struct hr_busy_part *to)
{
	int r = 0;

	if (w->n_runs > 0)
		qsort(w->runs, w->n_runs, sizeof(*w->runs), by_lane);
	for (size_t i = 0, n; r == 0 && i < w->n_runs; i += n) {
		n = 1;
		while (i + n < w->n_runs && w->runs[i + n].lane == w->runs[i].lane)
			n++;
		r = make_piece(w, w->runs + i, n, to);
	}
	return r;
}

/* ---- the batch ---- */

static uint32_t columns_of(const struct hr_busy_lanes *l, const struct hr_batch_ref *batch)
{
	uint32_t want = HR_COL_BIT(HR_COL_START) | HR_COL_BIT(HR_COL_DUR);

	if (l->classes > 1 || l->during != NULL)
		want |= HR_COL_BIT(HR_COL_OP);
	if (l->scope != HR_BUSY_ALL)
		want |= HR_COL_BIT(HR_COL_BITS);
	if (l->during != NULL)
		want |=
		    HR_COL_BIT(HR_COL_RET) | HR_COL_BIT(HR_COL_ASKED) | HR_COL_BIT(HR_COL_FLAGS);
	return hr_batch_needed(batch, want);
}

static void busy_batch_count(const struct hr_busy_lanes *l, const struct hr_query *q,
			     uint32_t stream, const struct hr_columns *c,
			     const struct hr_busy_worker *w)
{
	uint64_t offset_ns = (uint64_t)q->streams[stream].s->real_minus_boot_ns;

	for (uint32_t first = 0, end; first < c->count; first = end) {
		uint32_t key = hr__busy_key(l->keys, q, stream, c->tasks[c->task[first]].proc);

		end = rows_end(c, first);
		hr__during_ops(l->during, key, c, offset_ns, first, end, w->counted);
	}
}

static int check_ends(const struct hr_busy_worker *w, int64_t last_ns)
{
	for (size_t i = 0; i < w->n_runs; i++) {
		if (w->runs[i].sums.last_ns > last_ns)
			return -EBADMSG;
	}
	return 0;
}

int hr__busy_batch_read(struct hr_query *q, const struct hr_busy_lanes *lanes,
			const struct hr_busy_batch *batch, struct hr_busy_worker *w,
			struct hr_busy_part *ret)
{
	const struct hr_qstream *st = &q->streams[batch->stream];
	const struct hr_batch_ref *ref = &st->s->batches[batch->batch];
	struct hr_columns c;
	int r;

	ret->n_pieces = 0;
	if (ret->spans == NULL &&
	    (ret->spans = malloc(HR_BATCH_EVENTS * sizeof(*ret->spans))) == NULL)
		return -ENOMEM;
	r = hr_batch_read(&w->reader, st->s, ref, columns_of(lanes, ref), &c);
	if (r == 0)
		r = find_runs(lanes, q, batch->stream, &c, w);
	if (r == 0)
		r = check_ends(w, batch->last_ns);
	if (r < 0)
		return hr_query_damage(q, st, ref->frame, r);
	if (lanes->during != NULL)
		busy_batch_count(lanes, q, batch->stream, &c, w);
	return make_pieces(w, ret);
}

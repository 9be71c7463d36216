/* SPDX-License-Identifier: Apache-2.0 */
#include "query/diagnosis/scan.h"

#include <errno.h>
#include <stdlib.h>

#include "common/array.h"
#include "common/batch.h"
#include "query/tables/emit.h"

#define THREADS_MAX 64u

/*
 * An operation that is shorter, or moves more bytes per nanosecond, is probably served by the
 * kernel's caches: its time is CPU time of the caller.
 */
#define CACHED_NS	    30000
#define CACHED_BYTES_PER_NS 0.5

/* What the scanning threads share. */
struct scan_job {
	struct hr_query *q;
	struct hr_op_scan *scan;
	uint32_t *first; /* of each stream: its first interval; then the number of intervals */
	struct {
		uint32_t stream, batch;
	} * batches;
	size_t n_batches;
	_Atomic size_t next;
	_Atomic bool failed;
};

/* A scanning thread. */
struct scan_worker {
	struct scan_job *job;
	struct hr_decoder *decoder;
	struct hr_items items;
	struct hr_samples samples;
	int error;
};

int hr__scan_add(struct hr_op_scan *s, const struct hr_interval *interval)
{
	if (!hr_array_reserve(s->intervals, s->n, s->room))
		return -ENOMEM;
	s->intervals[s->n++] = *interval;
	return 0;
}

void hr__scan_done(struct hr_op_scan *s)
{
	free(s->intervals);
	free(s->ops);
	free(s->items.list);
	free(s->samples.list);
}

static int by_process_and_time(const void *a, const void *b)
{
	const struct hr_interval *x = a, *y = b;

	if (x->stream != y->stream)
		return x->stream < y->stream ? -1 : 1;
	if (x->proc != y->proc)
		return x->proc < y->proc ? -1 : 1;
	return (x->from > y->from) - (x->from < y->from);
}

/* ---- one batch ---- */

static enum hr_scan_group group_of(uint16_t op, uint16_t bits)
{
	if (bits & HR_EV_SCOPE_RUNTIME)
		return HR_SCAN_RUNTIME;
	switch (hr_op_info(op)->class) {
	case HR_CLASS_READ:
	case HR_CLASS_SEEK:
		return HR_SCAN_READ;
	case HR_CLASS_WRITE:
		return HR_SCAN_WRITE;
	case HR_CLASS_SYNC:
		return HR_SCAN_SYNC;
	default:
		return HR_SCAN_METADATA;
	}
}

/* The first of intervals [low, high) that is not before the key. */
static uint32_t lower(const struct hr_interval *list, uint32_t low, uint32_t high,
		      const struct hr_interval *key)
{
	while (low < high) {
		uint32_t middle = low + (high - low) / 2;

		if (by_process_and_time(&list[middle], key) < 0)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

/* The first interval in [at, end) that ends after `time`. */
static const struct hr_interval *interval_after(const struct hr_interval *at,
						const struct hr_interval *end, int64_t time)
{
	while (at < end) {
		const struct hr_interval *middle = at + (end - at) / 2;

		if (middle->to > time)
			end = middle;
		else
			at = middle + 1;
	}
	return at;
}

/* A row of a batch. */
struct row {
	int64_t from, to;
	uint32_t stream, tid, file;
	uint64_t bytes, end; /* end: the offset after the bytes; 0: unknown */
	const struct hr_op_info *op;
	uint16_t op_number;
	enum hr_scan_group group;
};

static bool is_cached(const struct row *row)
{
	double ns = (double)(row->to - row->from);

	return row->op->class != HR_CLASS_SYNC &&
	       (ns < CACHED_NS || (double)row->bytes / ns > CACHED_BYTES_PER_NS);
}

static void add_to_ops(struct hr_scan_ops *ops, const struct hr_interval *i, const struct row *row,
		       uint64_t ns)
{
	bool own = row->tid == i->tid;
	int64_t seen;

	atomic_fetch_add_explicit(own ? &ops->ns[row->group] : &ops->others[row->group], ns,
				  memory_order_relaxed);
	if (own && is_cached(row))
		atomic_fetch_add_explicit(&ops->cached_ns, ns, memory_order_relaxed);
	if (!own || row->group != HR_SCAN_RUNTIME)
		return;
	seen = atomic_load_explicit(&ops->runtime_end, memory_order_relaxed);
	while (seen < row->to &&
	       !atomic_compare_exchange_weak_explicit(&ops->runtime_end, &seen, row->to,
						      memory_order_relaxed, memory_order_relaxed))
		;
}

/* Counts an operation in the interval in which it began. */
static int add_to_item(struct hr_items *items, const struct hr_interval *i, const struct row *row,
		       uint64_t ns)
{
	bool began = row->from >= i->from, reads = row->op->class == HR_CLASS_READ;
	struct hr_item *item;

	if (i->use == HR_USE_NONE || row->file == 0 || row->group == HR_SCAN_RUNTIME ||
	    (i->use == HR_USE_OWN && row->tid != i->tid))
		return 0;
	item = hr__item(items, row->stream, row->file);
	if (item == NULL)
		return -ENOMEM;
	if (i->use == HR_USE_OWN) {
		item->own_ns += ns;
		item->own_sync_ns += row->group == HR_SCAN_SYNC ? ns : 0;
		return 0;
	}
	item->opens += began && row->op->class == HR_CLASS_OPEN;
	item->reads += began && reads;
	item->empty_reads += began && reads && row->bytes == 0;
	item->bytes += began && reads ? row->bytes : 0;
	item->examined += began && row->group == HR_SCAN_METADATA &&
			  row->op->class != HR_CLASS_OPEN && row->op->class != HR_CLASS_CLOSE;
	item->extent = reads && row->end > item->extent ? row->end : item->extent;
	*(reads ? &item->read_ns : &item->metadata_ns) += ns;
	item->waited_ns += i->use == HR_USE_WAITED ? ns : 0;
	return 0;
}

static bool is_empty_read(const struct row *row)
{
	return row->group == HR_SCAN_READ && row->bytes == 0;
}

/* An operation of a fetch that the kernel's caches did not serve. */
static bool is_sample(const struct hr_interval *i, const struct row *row)
{
	return i->use >= HR_USE_WAITED && row->from >= i->from && row->file != 0 &&
	       !is_cached(row) && (row->group == HR_SCAN_METADATA || row->group == HR_SCAN_READ);
}

static int add_row(struct scan_worker *w, const struct hr_interval *i, const struct row *row)
{
	int64_t from = row->from > i->from ? row->from : i->from;
	int64_t to = row->to < i->to ? row->to : i->to;
	uint64_t ns = to > from ? (uint64_t)(to - from) : 0;

	if (is_sample(i, row)) {
		struct hr_sample sample = {row->from, row->to, row->stream, row->file,
					   is_empty_read(row) ? 0 : row->op_number};

		if (hr__samples_add(&w->samples, &sample) < 0)
			return -ENOMEM;
	}
	add_to_ops(&w->job->scan->ops[i->ops], i, row, ns);
	return add_to_item(&w->items, i, row, ns);
}

static struct row row_of(const struct scan_job *j, uint32_t stream, const struct hr_columns *c,
			 uint32_t i)
{
	uint64_t start = c->start_ns[i] + (uint64_t)j->q->streams[stream].s->real_minus_boot_ns;
	const struct hr_op_info *op = hr_op_info(c->op[i]);
	uint64_t bytes = op->bytes_rule == HR_BYTES_NONE || c->ret[i] == HR_RET_NONE
			     ? 0
			     : hr_bytes_moved(op->bytes_rule, c->ret[i], c->asked[i],
					      c->flags != NULL ? c->flags[i] : 0);
	bool known = bytes > 0 && c->offset[i] >= 0;

	return (struct row){
	    .from = (int64_t)start,
	    .to = (int64_t)(start + c->dur_ns[i]),
	    .stream = stream,
	    .tid = c->tasks[c->task[i]].tid,
	    .file = c->file[i],
	    .bytes = bytes,
	    .end = known ? (uint64_t)c->offset[i] + bytes : 0,
	    .op = op,
	    .op_number = c->op[i],
	    .group = group_of(c->op[i], c->bits != NULL ? c->bits[i] : 0),
	};
}

/* Rows [first, end) are of one task, almost in the order of time. */
static int add_task(struct scan_worker *w, uint32_t stream, const struct hr_columns *c,
		    uint32_t first, uint32_t end)
{
	const struct scan_job *j = w->job;
	const struct hr_interval *list = j->scan->intervals, *low, *high, *at;
	struct hr_interval key = {
	    .stream = stream, .proc = c->tasks[c->task[first]].proc, .from = INT64_MIN};
	uint32_t n = j->first[stream + 1], start = lower(list, j->first[stream], n, &key);
	int r = 0;

	key.from = INT64_MAX;
	at = low = list + start;
	high = list + lower(list, start, n, &key);
	for (uint32_t i = first; r == 0 && low < high && i < end; i++) {
		struct row row = row_of(j, stream, c, i);

		if (at == high || at->to <= row.from || (at > low && at[-1].to > row.from))
			at = interval_after(low, high, row.from);
		for (const struct hr_interval *k = at; r == 0 && k < high && k->from < row.to; k++)
			r = add_row(w, k, &row);
	}
	return r;
}

static int scan_batch(struct scan_worker *w, uint32_t stream, const struct hr_batch_ref *batch)
{
	uint32_t want = HR_COL_BIT(HR_COL_START) | HR_COL_BIT(HR_COL_DUR) | HR_COL_BIT(HR_COL_OP) |
			HR_COL_BIT(HR_COL_BITS) | HR_COL_BIT(HR_COL_RET) |
			HR_COL_BIT(HR_COL_ASKED) | HR_COL_BIT(HR_COL_FILE) |
			HR_COL_BIT(HR_COL_OFFSET);
	const struct hr_qstream *st = &w->job->q->streams[stream];
	Headrace__Frame *frame = NULL;
	struct hr_columns c;
	int r = hr_stream_read(st->s, batch->frame, &frame);

	if (hr__emit_has_items(batch->ops, batch->ops_bytes))
		want |= HR_COL_BIT(HR_COL_FLAGS);
	if (r == 0)
		r = frame->body_case == HEADRACE__FRAME__BODY_EVENTS
			? hr_batch_decode(w->decoder, frame->events, want, &c)
			: -EBADMSG;
	if (frame != NULL)
		headrace__frame__free_unpacked(frame, NULL);
	if (r < 0 && r != -ENOMEM) {
		hr__query_damage(w->job->q, st, batch->frame, r);
		return 0;
	}
	for (uint32_t first = 0, end; r == 0 && first < c.count; first = end) {
		end = first + 1;
		while (end < c.count && c.task[end] == c.task[first])
			end++;
		r = add_task(w, stream, &c, first, end);
	}
	return r;
}

/* ---- all batches ---- */

static void *scan_thread(void *data)
{
	struct scan_worker *w = data;
	struct scan_job *j = w->job;
	size_t i;

	w->error = hr_decoder_new(&w->decoder);
	while (w->error == 0 && !atomic_load(&j->failed) &&
	       (i = atomic_fetch_add(&j->next, 1)) < j->n_batches) {
		uint32_t stream = j->batches[i].stream;

		w->error = atomic_load_explicit(&j->q->interrupted, memory_order_relaxed)
			       ? -EINTR
			       : scan_batch(w, stream,
					    &j->q->streams[stream].s->batches[j->batches[i].batch]);
		atomic_fetch_add_explicit(&j->q->batches_read, 1, memory_order_relaxed);
	}
	if (w->error < 0)
		atomic_store(&j->failed, true);
	hr_decoder_free(w->decoder);
	return NULL;
}

/* Whether the batch may have rows of a process with intervals. */
static bool is_wanted(const struct scan_job *j, uint32_t stream, const struct hr_batch_ref *b)
{
	const struct hr_interval *list = j->scan->intervals;
	uint32_t first = j->first[stream], end = j->first[stream + 1];

	if (b->n_procs == 0)
		return first < end;
	for (uint32_t i = 0; i < b->n_procs; i++) {
		struct hr_interval key = {.stream = stream, .proc = b->procs[i], .from = INT64_MIN};
		uint32_t low = lower(list, first, end, &key);

		if (low < end && list[low].proc == b->procs[i])
			return true;
	}
	return false;
}

static int list_batches(struct scan_job *j)
{
	struct hr_query *q = j->q;
	size_t total = 0, at = 0;

	for (uint32_t i = 0; i < q->n_streams; i++)
		total += q->streams[i].s->n_batches;
	j->first = calloc(q->n_streams + 1, sizeof(*j->first));
	j->batches = malloc((total + 1) * sizeof(*j->batches));
	if (j->first == NULL || j->batches == NULL)
		return -ENOMEM;
	for (uint32_t i = 0; i < q->n_streams; i++) {
		j->first[i] = (uint32_t)at;
		while (at < j->scan->n && j->scan->intervals[at].stream == i)
			at++;
		j->first[i + 1] = (uint32_t)at;
		for (uint32_t k = 0; k < q->streams[i].s->n_batches; k++) {
			if (!is_wanted(j, i, &q->streams[i].s->batches[k]))
				continue;
			j->batches[j->n_batches].stream = i;
			j->batches[j->n_batches++].batch = k;
		}
	}
	atomic_fetch_add(&q->batches, total);
	atomic_fetch_add(&q->batches_pruned, total - j->n_batches);
	return 0;
}

/* Runs the threads, and adds their items up. */
static int scan_all(struct scan_job *j)
{
	unsigned want = j->q->threads < THREADS_MAX ? j->q->threads : THREADS_MAX, n = 0;
	struct scan_worker workers[THREADS_MAX] = {{.job = j}};
	pthread_t threads[THREADS_MAX];
	int r = 0;

	while (n + 1 < want && n + 1 < j->n_batches) {
		workers[n + 1].job = j;
		if (pthread_create(&threads[n], NULL, scan_thread, &workers[n + 1]) != 0)
			break;
		n++;
	}
	scan_thread(&workers[0]);
	for (unsigned i = 0; i <= n; i++) {
		if (i > 0)
			pthread_join(threads[i - 1], NULL);
		if (r == 0)
			r = workers[i].error;
		if (r == 0)
			r = hr__items_merge(&j->scan->items, &workers[i].items);
		if (r == 0)
			r = hr__samples_merge(&j->scan->samples, &workers[i].samples);
		free(workers[i].items.list);
		free(workers[i].samples.list);
	}
	return r;
}

int hr__scan_run(struct hr_query *q, struct hr_op_scan *s)
{
	struct scan_job j = {.q = q, .scan = s};
	int r;

	s->ops = calloc((size_t)s->n_ops + 1, sizeof(*s->ops));
	if (s->n > 0)
		qsort(s->intervals, s->n, sizeof(*s->intervals), by_process_and_time);
	r = s->ops != NULL ? list_batches(&j) : -ENOMEM;
	if (r == 0)
		r = scan_all(&j);
	free(j.first);
	free(j.batches);
	return r;
}

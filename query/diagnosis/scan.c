/* SPDX-License-Identifier: Apache-2.0 */
#include "query/diagnosis/scan.h"

#include <errno.h>
#include <stdlib.h>

#include "common/array.h"

/*
 * An operation that is shorter than this, or that moves more than half a byte per nanosecond, is
 * probably served by the kernel's caches. Its time is CPU time of the caller.
 */
#define CACHED_NS 30000

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
	free(s->batches);
	*s = (struct hr_op_scan){0};
}

static enum hr_scan_group group_of(unsigned class)
{
	switch (class) {
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

void hr__scan_worker_init(struct hr_query *q, struct hr_scan_worker *ret)
{
	*ret = (struct hr_scan_worker){.q = q};
	for (uint16_t op = 0; op < HR_OP_MAX; op++) {
		const struct hr_op_info *info = hr_op_info(op);

		ret->ops[op] = (struct hr_scan_op){info->class, info->bytes_rule,
						   (uint8_t)group_of(info->class)};
	}
}

void hr__scan_worker_done(struct hr_scan_worker *w)
{
	hr_batch_reader_done(&w->reader);
	hr__items_done(&w->items);
	free(w->samples.list);
}

static int by_process_and_time(const void *a, const void *b)
{
	const struct hr_interval *x = a, *y = b;

	if (x->proc != y->proc)
		return x->proc < y->proc ? -1 : 1;
	return (x->from > y->from) - (x->from < y->from);
}

/* ---- one batch ---- */

/* Returns the index of the first interval whose process has the number `proc` or a higher one. */
static size_t first_of(const struct hr_op_scan *s, uint64_t proc)
{
	return hr_array_search(i, s->n, s->intervals[i].proc < proc);
}

/* Returns the first interval in [at, end) that ends after `time`. */
static const struct hr_interval *interval_after(const struct hr_interval *at,
						const struct hr_interval *end, int64_t time)
{
	return at + hr_array_search(i, (size_t)(end - at), at[i].to <= time);
}

/* An operation from a batch of events. */
struct row {
	int64_t from, to;
	uint32_t stream, tid, file;
	uint64_t bytes, end; /* `end`: offset of the operation's end in the file; 0: unknown */
	uint16_t op;
	uint8_t class, group; /* enum hr_class, enum hr_scan_group */
	bool cached;
};

static bool is_cached(unsigned class, uint64_t bytes, int64_t ns)
{
	return class != HR_CLASS_SYNC && (ns < CACHED_NS || bytes > (uint64_t)ns / 2);
}

/* ---- sums ---- */

static void add_up(_Atomic uint64_t *to, uint64_t ns)
{
	if (ns > 0)
		atomic_fetch_add_explicit(to, ns, memory_order_relaxed);
}

/* Adds the sums of this thread to those of all threads. */
static void put_sums(struct hr_op_scan *scan, struct hr_scan_worker *w)
{
	struct hr_scan_sums *s = &w->sums;
	struct hr_scan_ops *ops = &scan->ops[s->ops];
	int64_t seen;

	if (!s->any)
		return;
	for (unsigned i = 0; i < HR_SCAN_GROUPS; i++)
		add_up(s->own ? &ops->ns[i] : &ops->others[i], s->ns[i]);
	add_up(&ops->cached_ns, s->cached_ns);
	seen = atomic_load_explicit(&ops->runtime_end, memory_order_relaxed);
	while (seen < s->runtime_end &&
	       !atomic_compare_exchange_weak_explicit(&ops->runtime_end, &seen, s->runtime_end,
						      memory_order_relaxed, memory_order_relaxed))
		;
	*s = (struct hr_scan_sums){0};
}

static void add_to_sums(struct hr_op_scan *scan, struct hr_scan_worker *w,
			const struct hr_interval *i, const struct row *row, uint64_t ns)
{
	struct hr_scan_sums *s = &w->sums;
	bool own = row->tid == i->tid;

	if (!s->any || s->ops != i->ops || s->own != own) {
		put_sums(scan, w);
		s->ops = i->ops;
		s->own = own;
		s->any = true;
	}
	s->ns[row->group] += ns;
	if (!own)
		return;
	if (row->cached)
		s->cached_ns += ns;
	if (row->group == HR_SCAN_RUNTIME && row->to > s->runtime_end)
		s->runtime_end = row->to;
}

/*
 * Adds the part of an operation that lies in an interval to the sums of the file. An operation that
 * lies in several intervals is counted once, in the interval in which it began.
 */
static int add_to_item(struct hr_items *items, const struct hr_interval *i, const struct row *row,
		       uint64_t ns)
{
	bool began = row->from >= i->from;
	struct hr_item *item;

	if (i->use == HR_USE_NONE || row->file == 0 || row->group == HR_SCAN_RUNTIME ||
	    (i->use == HR_USE_OWN && row->tid != i->tid))
		return 0;
	item = hr__item(items, row->stream, row->file);
	if (item == NULL)
		return -ENOMEM;
	if (row->class == HR_CLASS_MAP)
		item->mapped_bytes += began ? row->bytes : 0;
	if (i->use == HR_USE_OWN) {
		item->own_ns += ns;
		item->own_sync_ns += row->group == HR_SCAN_SYNC ? ns : 0;
		item->own_syncs += row->group == HR_SCAN_SYNC && began;
		return 0;
	}
	if (row->class == HR_CLASS_READ) {
		item->reads += began;
		item->empty_reads += began && row->bytes == 0;
		item->bytes += began ? row->bytes : 0;
		item->extent = row->end > item->extent ? row->end : item->extent;
		item->read_ns += ns;
	} else {
		item->opens += began && row->class == HR_CLASS_OPEN;
		item->examined += began && row->group == HR_SCAN_METADATA &&
				  row->class != HR_CLASS_OPEN && row->class != HR_CLASS_CLOSE;
		item->metadata_ns += ns;
	}
	item->waited_ns += i->use == HR_USE_WAITED ? ns : 0;
	return 0;
}

static bool is_empty_read(const struct row *row)
{
	return row->group == HR_SCAN_READ && row->bytes == 0;
}

/* Samples (samples.h) are operations of fetches that the kernel's caches did not serve. */
static bool is_sample(const struct hr_interval *i, const struct row *row)
{
	return i->use >= HR_USE_WAITED && row->from >= i->from && row->file != 0 && !row->cached &&
	       (row->group == HR_SCAN_METADATA || row->group == HR_SCAN_READ);
}

static int add_row(struct hr_op_scan *scan, struct hr_scan_worker *w, const struct hr_interval *i,
		   const struct row *row)
{
	int64_t from = row->from > i->from ? row->from : i->from;
	int64_t to = row->to < i->to ? row->to : i->to;
	uint64_t ns = to > from ? (uint64_t)(to - from) : 0;

	if (is_sample(i, row)) {
		struct hr_sample sample = {row->from, row->to, row->stream, row->file,
					   is_empty_read(row) ? 0 : row->op};

		if (hr__samples_add(&w->samples, &sample) < 0)
			return -ENOMEM;
	}
	add_to_sums(scan, w, i, row, ns);
	return add_to_item(&w->items, i, row, ns);
}

static struct row row_of(const struct hr_op_scan *s, const struct hr_scan_worker *w,
			 const struct hr_columns *c, uint32_t i, int64_t clock, uint32_t tid)
{
	uint64_t start = c->start_ns[i] + (uint64_t)clock, dur = c->dur_ns[i];
	const struct hr_scan_op *op = &w->ops[c->op[i]];
	uint64_t bytes = op->bytes_rule == HR_BYTES_NONE || c->ret[i] == HR_RET_NONE
			     ? 0
			     : hr_bytes_moved(op->bytes_rule, c->ret[i], c->asked[i],
					      c->flags != NULL ? c->flags[i] : 0);
	bool known = bytes > 0 && c->offset[i] >= 0;
	bool runtime = c->bits != NULL && (c->bits[i] & HR_EV_SCOPE_RUNTIME) != 0;

	if (op->class == HR_CLASS_MAP && c->asked[i] != HR_ASKED_NONE)
		bytes = c->asked[i];
	return (struct row){
	    .from = (int64_t)start,
	    .to = (int64_t)(start + dur),
	    .stream = s->stream,
	    .tid = tid,
	    .file = c->file[i],
	    .bytes = bytes,
	    .end = known ? (uint64_t)c->offset[i] + bytes : 0,
	    .op = c->op[i],
	    .class = op->class,
	    .group = runtime ? HR_SCAN_RUNTIME : op->group,
	    .cached = is_cached(op->class, bytes, (int64_t)dur),
	};
}

#define AHEAD 16u

/* Loads the sums of the next files, which are far from each other, into the CPU's cache. */
static void prefetch(const struct hr_items *items, const uint32_t *file, uint32_t i, uint32_t end)
{
	uint32_t far = i + 2 * AHEAD, near = i + AHEAD;

	if (far < end && file[far] != file[far - 1])
		hr__item_prefetch_slot(items, file[far]);
	if (near < end && file[near] != file[near - 1])
		hr__item_prefetch(items, file[near]);
}

/* Adds the operations [first, end), which are of one thread and almost in the order of time. */
static int add_task(struct hr_op_scan *s, struct hr_scan_worker *w, const struct hr_columns *c,
		    uint32_t first, uint32_t end)
{
	int64_t clock = w->q->streams[s->stream].s->real_minus_boot_ns;
	const struct hr_task *task = &c->tasks[c->task[first]];
	const struct hr_interval *at, *low = s->intervals + first_of(s, task->proc), *high;
	int r = 0;

	at = low;
	high = s->intervals + (task->proc < UINT64_MAX ? first_of(s, task->proc + 1) : s->n);
	for (uint32_t i = first; r == 0 && low < high && i < end; i++) {
		struct row row = row_of(s, w, c, i, clock, task->tid);

		prefetch(&w->items, c->file, i, end);
		if (at == high || at->to <= row.from || (at > low && at[-1].to > row.from))
			at = interval_after(low, high, row.from);
		for (const struct hr_interval *k = at; r == 0 && k < high && k->from < row.to; k++)
			r = add_row(s, w, k, &row);
	}
	put_sums(s, w);
	return r;
}

static int scan_batch(struct hr_op_scan *s, struct hr_scan_worker *w,
		      const struct hr_batch_ref *batch)
{
	const uint32_t want =
	    HR_COL_BIT(HR_COL_START) | HR_COL_BIT(HR_COL_DUR) | HR_COL_BIT(HR_COL_OP) |
	    HR_COL_BIT(HR_COL_BITS) | HR_COL_BIT(HR_COL_RET) | HR_COL_BIT(HR_COL_ASKED) |
	    HR_COL_BIT(HR_COL_FILE) | HR_COL_BIT(HR_COL_OFFSET) | HR_COL_BIT(HR_COL_FLAGS);
	const struct hr_qstream *st = &w->q->streams[s->stream];
	struct hr_columns c;
	int r = hr_batch_read(&w->reader, st->s, batch, hr_batch_needed(batch, want), &c);

	if (r < 0)
		return hr_query_damage(w->q, st, batch->frame, r);
	for (uint32_t first = 0, end; r == 0 && first < c.count; first = end) {
		end = first + 1;
		while (end < c.count && c.task[end] == c.task[first])
			end++;
		r = add_task(s, w, &c, first, end);
	}
	return r;
}

/* ---- all batches ---- */

int hr__scan_work(struct hr_op_scan *s, struct hr_scan_worker *w)
{
	uint32_t i;
	int r = 0;

	while (r == 0 && (i = atomic_fetch_add(&s->next, 1)) < s->n_batches) {
		r = atomic_load_explicit(&w->q->interrupted, memory_order_relaxed)
			? -EINTR
			: scan_batch(s, w, &w->q->streams[s->stream].s->batches[s->batches[i]]);
		atomic_fetch_add_explicit(&w->q->batches_read, 1, memory_order_relaxed);
	}
	return r;
}

/* Whether the batch of events may contain operations of a process with intervals. */
static bool is_wanted(const struct hr_op_scan *s, const struct hr_batch_ref *b)
{
	if (b->n_procs == 0)
		return s->n > 0;
	for (uint32_t i = 0; i < b->n_procs; i++) {
		size_t first = first_of(s, b->procs[i]);

		if (first < s->n && s->intervals[first].proc == b->procs[i])
			return true;
	}
	return false;
}

int hr__scan_begin(struct hr_query *q, struct hr_op_scan *s)
{
	const struct hr_stream *st = q->streams[s->stream].s;

	s->ops = calloc((size_t)s->n_ops + 1, sizeof(*s->ops));
	s->batches = malloc((st->n_batches + (size_t)1) * sizeof(*s->batches));
	if (s->ops == NULL || s->batches == NULL)
		return -ENOMEM;
	if (s->n > 0)
		qsort(s->intervals, s->n, sizeof(*s->intervals), by_process_and_time);
	for (uint32_t i = 0; i < st->n_batches; i++)
		if (is_wanted(s, &st->batches[i]))
			s->batches[s->n_batches++] = i;
	atomic_fetch_add(&q->batches, st->n_batches);
	atomic_fetch_add(&q->batches_pruned, st->n_batches - s->n_batches);
	return 0;
}

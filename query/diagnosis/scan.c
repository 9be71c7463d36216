/* SPDX-License-Identifier: Apache-2.0 */
#include "query/diagnosis/scan.h"

#include <errno.h>
#include <stdlib.h>

#include "common/array.h"
#include "common/batch.h"

/*
 * An operation that is shorter, or moves more bytes per nanosecond, is probably served by the
 * kernel's caches: its time is CPU time of the caller.
 */
#define CACHED_NS	    30000
#define CACHED_BYTES_PER_NS 0.5

/* What the scanning threads share. */
struct job {
	struct hr_query *q;
	struct hr_scan *scan;
	uint32_t *first; /* of each stream: its first interval; then the number of intervals */
	struct {
		uint32_t stream, batch;
	} * batches;
	size_t n_batches;
	_Atomic size_t next;
	_Atomic int error;
};

int hr__scan_add(struct hr_scan *s, const struct hr_interval *interval)
{
	if (!hr_array_reserve(s->intervals, s->n, s->room))
		return -ENOMEM;
	s->intervals[s->n++] = *interval;
	return 0;
}

void hr__scan_done(struct hr_scan *s)
{
	free(s->intervals);
	free(s->ops);
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

static bool is_cached(const struct hr_columns *c, uint32_t i)
{
	const struct hr_op_info *op = hr_op_info(c->op[i]);

	if (op->class == HR_CLASS_SYNC)
		return false;
	return c->dur_ns[i] < CACHED_NS ||
	       (op->bytes_rule != HR_BYTES_NONE && c->ret[i] > 0 &&
		(double)c->ret[i] / (double)c->dur_ns[i] > CACHED_BYTES_PER_NS);
}

static void add_op(struct hr_scan *s, const struct hr_interval *i, uint32_t tid,
		   enum hr_scan_group group, bool cached, int64_t from, int64_t to)
{
	struct hr_scan_ops *ops = &s->ops[i->ops];
	_Atomic uint64_t *sums = tid == i->tid ? ops->ns : ops->others;

	from = from > i->from ? from : i->from;
	to = to < i->to ? to : i->to;
	if (to > from)
		atomic_fetch_add_explicit(&sums[group], (uint64_t)(to - from),
					  memory_order_relaxed);
	if (to > from && cached && sums == ops->ns)
		atomic_fetch_add_explicit(&ops->cached_ns, (uint64_t)(to - from),
					  memory_order_relaxed);
	if (group == HR_SCAN_RUNTIME && tid == i->tid) {
		int64_t seen = atomic_load_explicit(&ops->runtime_end, memory_order_relaxed);

		while (seen < to && !atomic_compare_exchange_weak_explicit(&ops->runtime_end, &seen,
									   to, memory_order_relaxed,
									   memory_order_relaxed))
			;
	}
}

/* Rows [first, end) are of one task, almost in the order of time. */
static void add_task(const struct job *j, uint32_t stream, const struct hr_columns *c,
		     uint32_t first, uint32_t end)
{
	struct hr_scan *s = j->scan;
	const struct hr_task *task = &c->tasks[c->task[first]];
	uint64_t offset_ns = (uint64_t)j->q->streams[stream].s->real_minus_boot_ns;
	struct hr_interval key = {.stream = stream, .proc = task->proc, .from = INT64_MIN};
	uint32_t n = j->first[stream + 1], start = lower(s->intervals, j->first[stream], n, &key);
	const struct hr_interval *low = s->intervals + start, *high, *at;

	key.from = INT64_MAX;
	high = s->intervals + lower(s->intervals, start, n, &key);
	at = low;
	for (uint32_t i = first; i < end; i++) {
		int64_t from = (int64_t)(c->start_ns[i] + offset_ns);
		int64_t to = (int64_t)(c->start_ns[i] + offset_ns + c->dur_ns[i]);
		uint16_t bits = c->bits != NULL ? c->bits[i] : 0;

		if (at == high || at->to <= from || (at > low && at[-1].to > from))
			at = interval_after(low, high, from);
		for (const struct hr_interval *k = at; k < high && k->from < to; k++)
			add_op(s, k, task->tid, group_of(c->op[i], bits), is_cached(c, i), from,
			       to);
	}
}

static int scan_batch(const struct job *j, struct hr_decoder *decoder, uint32_t stream,
		      uint32_t batch)
{
	const uint32_t want = HR_COL_BIT(HR_COL_START) | HR_COL_BIT(HR_COL_DUR) |
			      HR_COL_BIT(HR_COL_OP) | HR_COL_BIT(HR_COL_BITS) |
			      HR_COL_BIT(HR_COL_RET);
	const struct hr_qstream *st = &j->q->streams[stream];
	uint32_t frame_index = st->s->batches[batch].frame;
	Headrace__Frame *frame = NULL;
	struct hr_columns c;
	int r = hr_stream_read(st->s, frame_index, &frame);

	if (r == 0)
		r = frame->body_case == HEADRACE__FRAME__BODY_EVENTS
			? hr_batch_decode(decoder, frame->events, want, &c)
			: -EBADMSG;
	if (frame != NULL)
		headrace__frame__free_unpacked(frame, NULL);
	if (r == -ENOMEM)
		return r;
	if (r < 0) {
		hr__query_damage(j->q, st, frame_index, r);
		return 0;
	}
	for (uint32_t first = 0, end; first < c.count; first = end) {
		end = first + 1;
		while (end < c.count && c.task[end] == c.task[first])
			end++;
		add_task(j, stream, &c, first, end);
	}
	return 0;
}

/* ---- all batches ---- */

static void *scan_thread(void *data)
{
	struct job *j = data;
	struct hr_decoder *decoder;
	int r = hr_decoder_new(&decoder);
	size_t i;

	while (r == 0 && j->error == 0 && (i = atomic_fetch_add(&j->next, 1)) < j->n_batches) {
		r = atomic_load_explicit(&j->q->interrupted, memory_order_relaxed)
			? -EINTR
			: scan_batch(j, decoder, j->batches[i].stream, j->batches[i].batch);
		atomic_fetch_add_explicit(&j->q->batches_read, 1, memory_order_relaxed);
	}
	if (r < 0)
		j->error = r;
	hr_decoder_free(decoder);
	return NULL;
}

/* Whether the batch may have rows of a process with intervals. */
static bool is_wanted(const struct job *j, uint32_t stream, const struct hr_batch_ref *b)
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

static int list_batches(struct job *j)
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

int hr__scan_run(struct hr_query *q, struct hr_scan *s)
{
	struct job j = {.q = q, .scan = s};
	pthread_t threads[64];
	unsigned n = 0, want = q->threads < 64 ? q->threads : 64;
	int r;

	s->ops = calloc((size_t)s->n_ops + 1, sizeof(*s->ops));
	if (s->n > 0)
		qsort(s->intervals, s->n, sizeof(*s->intervals), by_process_and_time);
	r = s->ops != NULL ? list_batches(&j) : -ENOMEM;
	if (r == 0) {
		while (n + 1 < want && n < j.n_batches &&
		       pthread_create(&threads[n], NULL, scan_thread, &j) == 0)
			n++;
		scan_thread(&j);
		for (unsigned i = 0; i < n; i++)
			pthread_join(threads[i], NULL);
		r = j.error;
	}
	free(j.first);
	free(j.batches);
	return r;
}

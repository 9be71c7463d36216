/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hr_events(): the table function behind `events`. A task is one batch: a thread takes the next
 * batch that pruning left, decodes the columns that the plan needs, and hands them out a vector
 * at a time (emit.c).
 */
#include <errno.h>
#include <stdlib.h>

#include "collector/query/emit.h"

struct unit {
	uint32_t stream;
	uint32_t batch;
};

/* The files of a stream that a statement is about, found by the first thread that comes to it. */
struct file_filter {
	pthread_mutex_t lock;
	_Atomic(uint8_t *)
	    bits; /* by file id; release after it is filled, acquire before it is read */
};

/* One use of hr_events() in a running plan; read-only but for `next` and `files`. */
struct scan {
	struct hr_query *q;
	struct unit *units;
	size_t n_units;
	_Atomic size_t next;
	struct file_filter *files; /* of each stream; NULL: all files */
	bool filter_ops;
	bool shows_flags;
	uint32_t want;	/* HR_COL_BIT()s */
	unsigned names; /* HR_NAMES_* */
	unsigned n_columns;
	uint16_t columns[];
};

/* One thread's place in it. */
struct worker {
	struct hr_decoder *decoder;
	Headrace__Frame *frame;
	struct hr_emit emit;
	uint32_t *rows; /* selected rows of the batch */
	uint32_t n_rows, at;
};

static void scan_free(void *data)
{
	struct scan *s = data;

	for (size_t i = 0; s->files != NULL && i < s->q->n_streams; i++) {
		pthread_mutex_destroy(&s->files[i].lock);
		free(atomic_load(&s->files[i].bits));
	}
	free(s->files);
	free(s->units);
	free(s);
}

static void worker_free(void *data)
{
	struct worker *w = data;

	if (w->frame != NULL)
		headrace__frame__free_unpacked(w->frame, NULL);
	hr_decoder_free(w->decoder);
	hr__emit_done(&w->emit);
	free(w->rows);
	free(w);
}

static void bind(duckdb_bind_info info)
{
	struct hr_query *q = hr_duckdb.bind_get_extra_info(info);
	uint64_t rows = 0;

	hr__table_bind(info, &hr__tables[HR_TABLE_EVENTS]);
	for (size_t i = 0; i < q->n_streams; i++) {
		for (uint32_t b = 0; b < q->streams[i].s->n_batches; b++)
			rows += q->streams[i].s->batches[b].count;
	}
	hr_duckdb.bind_set_cardinality(info, rows, false);
}

static bool can_matter(const struct hr_query *q, const struct hr_stream *s, uint32_t batch)
{
	return q->no_prune ||
	       (hr_prune_stream(&q->prune, s) && hr_prune_batch(&q->prune, s, &s->batches[batch]));
}

/*
 * In turns over the streams, so that threads begin with different ones and make their names side
 * by side.
 */
static int list_units(struct scan *s)
{
	struct hr_query *q = s->q;
	size_t total = 0, pruned = 0;
	uint32_t most = 0;

	for (size_t i = 0; i < q->n_streams; i++)
		total += q->streams[i].s->n_batches;
	s->units = malloc((total + 1) * sizeof(*s->units));
	if (s->units == NULL)
		return -ENOMEM;
	for (uint32_t i = 0; i < q->n_streams; i++)
		most = q->streams[i].s->n_batches > most ? q->streams[i].s->n_batches : most;
	for (uint32_t b = 0; b < most; b++) {
		for (uint32_t i = 0; i < q->n_streams; i++) {
			if (b >= q->streams[i].s->n_batches)
				continue;
			if (can_matter(q, q->streams[i].s, b))
				s->units[s->n_units++] = (struct unit){i, b};
			else
				pruned++;
		}
	}
	atomic_fetch_add(&q->batches_pruned, pruned);
	return 0;
}

static int make_file_filters(struct scan *s)
{
	if (s->q->no_prune || !s->q->prune.path.known)
		return 0;
	s->files = calloc(s->q->n_streams + 1, sizeof(*s->files));
	if (s->files == NULL)
		return -ENOMEM;
	for (size_t i = 0; i < s->q->n_streams; i++)
		pthread_mutex_init(&s->files[i].lock, NULL);
	s->want |= HR_COL_BIT(HR_COL_FILE);
	return 0;
}

static void init(duckdb_init_info info)
{
	struct hr_query *q = hr_duckdb.init_get_extra_info(info);
	idx_t n = hr_duckdb.init_get_column_count(info);
	struct scan *s = calloc(1, sizeof(*s) + n * sizeof(s->columns[0]));

	if (s == NULL) {
		hr_duckdb.init_set_error(info, "out of memory");
		return;
	}
	s->q = q;
	s->filter_ops = !q->no_prune && q->prune.ops_known;
	s->want = s->filter_ops ? HR_COL_BIT(HR_COL_OP) : 0;
	s->n_columns = (unsigned)n;
	for (idx_t i = 0; i < n; i++) {
		idx_t column = hr_duckdb.init_get_column_index(info, i);

		/* count(*) asks for a row number or nothing: neither is a column of ours. */
		s->columns[i] = column < HR_EVENTS_END ? (uint16_t)column : HR_EVENTS_END;
		hr__emit_needs(s->columns[i], &s->want, &s->names);
		s->shows_flags |= column == HR_EVENTS_flags;
	}
	if (make_file_filters(s) < 0 || list_units(s) < 0) {
		scan_free(s);
		hr_duckdb.init_set_error(info, "out of memory");
		return;
	}
	hr_duckdb.init_set_max_threads(info, s->n_units < q->threads ? s->n_units + 1 : q->threads);
	hr_duckdb.init_set_init_data(info, s, scan_free);
}

static void init_worker(duckdb_init_info info)
{
	struct worker *w = calloc(1, sizeof(*w));

	if (w == NULL || hr_decoder_new(&w->decoder) < 0 ||
	    (w->rows = malloc(HR_BATCH_EVENTS * sizeof(*w->rows))) == NULL) {
		if (w != NULL)
			worker_free(w);
		hr_duckdb.init_set_error(info, "out of memory");
		return;
	}
	hr_duckdb.init_set_init_data(info, w, worker_free);
}

static inline bool has_bit(const uint8_t *bits, uint32_t i)
{
	return (bits[i / 8] >> (i % 8) & 1) != 0;
}

/* Chooses the rows to hand out: all, or those whose op and file can match. */
static void select_rows(const struct scan *s, struct worker *w, const uint8_t *files)
{
	const struct hr_columns *c = &w->emit.c;
	const uint64_t *ops = s->q->prune.ops;
	uint32_t max_file = w->emit.st->s->max_file, n = 0;

	for (uint32_t i = 0; i < c->count; i++) {
		w->rows[n] = i;
		if (s->filter_ops &&
		    (c->op[i] >= HR_PRUNE_OPS || !(ops[c->op[i] / 64] >> (c->op[i] % 64) & 1)))
			continue;
		if (files != NULL && (c->file[i] > max_file || !has_bit(files, c->file[i])))
			continue;
		n++;
	}
	w->n_rows = n;
}

/* The bitmap of a stream's files that can match; NULL: all. */
static int wanted_files(const struct scan *s, uint32_t stream, const uint8_t **ret)
{
	struct file_filter *f = s->files != NULL ? &s->files[stream] : NULL;
	uint8_t *bits = f != NULL ? atomic_load_explicit(&f->bits, memory_order_acquire) : NULL;
	int r = 0;

	if (f != NULL && bits == NULL) {
		pthread_mutex_lock(&f->lock);
		bits = atomic_load_explicit(&f->bits, memory_order_relaxed);
		if (bits == NULL)
			r = hr__names_match(&s->q->streams[stream], &s->q->prune.path, &bits);
		if (r == 0)
			atomic_store_explicit(&f->bits, bits, memory_order_release);
		pthread_mutex_unlock(&f->lock);
	}
	*ret = bits;
	return r;
}

/*
 * Whether a batch names one of the files: its list holds differences of stream ids, zigzag coded.
 */
static bool names_file(const Headrace__EventBatch *b, const uint8_t *files, uint32_t max_file)
{
	uint32_t id = 0;

	for (size_t i = 0; files != NULL && i < b->n_files; i++) {
		id += b->files[i] >> 1 ^ -(b->files[i] & 1);
		if (id <= max_file && has_bit(files, id))
			return true;
	}
	return files == NULL;
}

/* `bytes` takes flags (item sizes) only where there are fread and its kin: few batches have any. */
static uint32_t needed(const struct scan *s, const struct hr_batch_ref *ref)
{
	if (s->shows_flags || hr__emit_has_items(ref->ops, ref->ops_bytes))
		return s->want;
	return s->want & ~HR_COL_BIT(HR_COL_FLAGS);
}

/* Reads and decodes one batch. A damaged one counts as empty and is noted. Else -ENOMEM. */
static int load(const struct scan *s, struct worker *w, struct unit unit)
{
	struct hr_qstream *st = &s->q->streams[unit.stream];
	const struct hr_batch_ref *ref = &st->s->batches[unit.batch];
	const uint8_t *files;
	int r;

	w->n_rows = w->at = 0;
	w->emit.st = st;
	if (s->want == 0 && !hr__emit_any(s->columns, s->n_columns)) {
		w->n_rows = ref->count; /* only counted: nothing to read */
		return 0;
	}
	if (w->frame != NULL)
		headrace__frame__free_unpacked(w->frame, NULL);
	w->frame = NULL;
	r = wanted_files(s, unit.stream, &files);
	if (r < 0)
		return r;
	r = hr_stream_read(st->s, ref->frame, &w->frame);
	if (r == 0 && w->frame->body_case != HEADRACE__FRAME__BODY_EVENTS)
		r = -EBADMSG;
	if (r == 0 && !names_file(w->frame->events, files, st->s->max_file))
		return 0;
	if (r == 0)
		r = hr_batch_decode(w->decoder, w->frame->events, needed(s, ref), &w->emit.c);
	if (r == 0 && w->emit.c.count > HR_BATCH_EVENTS)
		r = -EBADMSG;
	if (r < 0) {
		if (r == -ENOMEM)
			return r;
		hr__query_damage(s->q, st, ref->frame, r);
		return 0;
	}
	r = hr__names_need(s->q, st, s->names);
	if (r == 0)
		r = hr__emit_tasks(&w->emit);
	if (r == 0)
		select_rows(s, w, files);
	return r;
}

static void scan_chunk(duckdb_function_info info, duckdb_data_chunk output)
{
	struct scan *s = hr_duckdb.function_get_init_data(info);
	struct worker *w = hr_duckdb.function_get_local_init_data(info);
	uint32_t n = (uint32_t)hr_duckdb.vector_size();

	while (w->at == w->n_rows) {
		size_t next = atomic_fetch_add_explicit(&s->next, 1, memory_order_relaxed);

		if (next >= s->n_units) {
			hr_duckdb.data_chunk_set_size(output, 0);
			return;
		}
		if (load(s, w, s->units[next]) < 0) {
			hr_duckdb.function_set_error(info, "out of memory while reading events");
			return;
		}
		atomic_fetch_add_explicit(&s->q->batches_read, 1, memory_order_relaxed);
	}
	if (n > w->n_rows - w->at)
		n = w->n_rows - w->at;
	for (unsigned i = 0; i < s->n_columns; i++) {
		struct hr_out out;

		if (s->columns[i] == HR_EVENTS_END)
			continue;
		out = hr__out(hr_duckdb.data_chunk_get_vector(output, i));
		hr__emit_column(&w->emit, s->columns[i], w->rows + w->at, n, &out);
	}
	w->at += n;
	hr_duckdb.data_chunk_set_size(output, n);
}

int hr__events_register(struct hr_query *q)
{
	static const struct hr_table_function events = {bind, init, init_worker, scan_chunk};

	return hr__table_register(q, "hr_events", q, &events);
}

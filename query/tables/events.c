/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The table function hr_events(). Each thread takes the next batch of events, decodes the columns
 * that the plan needs, groups rows with equal values (groups.h) and writes vectors (emit.h).
 */
#include <errno.h>
#include <stdlib.h>

#include "query/tables/emit.h"
#include "query/tables/groups.h"
#include "store/batch_reader.h"

/*
 * A statement that reads more columns with different values in each row lists single operations.
 * Then rows are not grouped, and stay in the order of time.
 */
#define FEW_COLUMNS 4u

struct scan_unit {
	uint32_t stream;
	uint32_t batch;
};

/*
 * The files of a stream that the WHERE clause names. The first thread that needs them finds them.
 */
struct file_filter {
	pthread_mutex_t lock;
	/* A bitmap by file number, stored with release order when it is complete. */
	_Atomic(uint8_t *) bits;
};

/* One use of hr_events() in a plan of DuckDB. During the scan, only next, files and seen change. */
struct events_scan {
	struct hr_query *q;
	struct scan_unit *units;
	size_t n_units;
	_Atomic size_t next;
	struct file_filter *files; /* one filter for each stream; NULL: all files */
	/* For each stream, the files of which a row was returned. NULL: all rows are returned. */
	_Atomic(_Atomic uint64_t *) *seen;
	bool filter_ops;
	bool shows_flags;
	bool distinct;
	uint32_t most_groups; /* maximum number of groups; 1: no grouping */
	unsigned keys;	      /* bits 1 << enum hr_emit_key of all columns */
	uint32_t want;	      /* bits HR_COL_BIT(column) of the columns to decode */
	unsigned names;	      /* bits HR_NAMES_* */
	unsigned n_columns;
	uint16_t columns[];
};

struct events_worker {
	struct hr_batch_reader reader;
	struct hr_emit emit;
	struct hr_groups *groups;
	uint32_t group, at; /* the next group to return, and the next row in it */
	unsigned constant;  /* bit k: columns with key k are constant in each group */
	uint32_t *keys;
};

static void scan_free(void *data)
{
	struct events_scan *s = data;

	for (size_t i = 0; s->files != NULL && i < s->q->n_streams; i++) {
		pthread_mutex_destroy(&s->files[i].lock);
		free(atomic_load(&s->files[i].bits));
	}
	for (size_t i = 0; s->seen != NULL && i < s->q->n_streams; i++)
		free(atomic_load(&s->seen[i]));
	free(s->seen);
	free(s->files);
	free(s->units);
	free(s);
}

static void events_worker_free(void *data)
{
	struct events_worker *w = data;

	hr_batch_reader_done(&w->reader);
	hr__emit_done(&w->emit);
	hr__groups_free(w->groups);
	free(w->keys);
	free(w);
}

static void events_bind(duckdb_bind_info info)
{
	struct hr_query *q = hr_duckdb.bind_get_extra_info(info);
	uint64_t rows = 0;

	hr_table_bind(info, HR_TABLE_EVENTS);
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

/* Lists a batch of each stream in turn, so threads prepare names of several streams at a time. */
static int list_units(struct events_scan *s)
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
				s->units[s->n_units++] = (struct scan_unit){i, b};
			else
				pruned++;
		}
	}
	atomic_fetch_add(&q->batches, total);
	atomic_fetch_add(&q->batches_pruned, pruned);
	return 0;
}

static int make_file_filters(struct events_scan *s)
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

/* If only the file distinguishes rows, makes `seen`, to return one row for each file. */
static int make_seen(struct events_scan *s)
{
	const unsigned of_file =
	    1u << HR_KEY_STREAM | 1u << HR_KEY_MOUNT | 1u << HR_KEY_PATTERN | 1u << HR_KEY_FILE;

	if (!s->distinct || (s->keys & ~of_file) != 0 || !(s->want & HR_COL_BIT(HR_COL_FILE)))
		return 0;
	s->seen = calloc(s->q->n_streams + 1, sizeof(*s->seen));
	return s->seen != NULL ? 0 : -ENOMEM;
}

static void events_init(duckdb_init_info info)
{
	struct hr_query *q = hr_duckdb.init_get_extra_info(info);
	idx_t n = hr_duckdb.init_get_column_count(info);
	struct events_scan *s = calloc(1, sizeof(*s) + n * sizeof(s->columns[0]));
	unsigned loose = 0; /* number of columns with a different value in each row */

	if (s == NULL) {
		hr_duckdb.init_set_error(info, "out of memory");
		return;
	}
	s->q = q;
	s->filter_ops = !q->no_prune && q->prune.ops_known;
	s->distinct = !q->no_prune && q->prune.distinct;
	s->want = s->filter_ops ? HR_COL_BIT(HR_COL_OP) : 0;
	s->n_columns = (unsigned)n;
	for (idx_t i = 0; i < n; i++) {
		idx_t column = hr_duckdb.init_get_column_index(info, i);

		/* For count(*), DuckDB requests no column, or a row number. */
		s->columns[i] = column < HR_EVENTS_END ? (uint16_t)column : HR_EVENTS_END;
		if (s->columns[i] == HR_EVENTS_END)
			continue;
		s->want |= hr__event_columns[column].want;
		s->names |= hr__event_columns[column].names;
		s->keys |= 1u << hr__event_columns[column].key;
		s->shows_flags |= column == HR_EVENTS_flags;
		loose += hr__event_columns[column].key >= HR_KEY_FILE;
	}
	s->most_groups = loose <= FEW_COLUMNS ? HR_GROUPS_MAX : 1;
	if (make_file_filters(s) < 0 || make_seen(s) < 0 || list_units(s) < 0) {
		scan_free(s);
		hr_duckdb.init_set_error(info, "out of memory");
		return;
	}
	hr_duckdb.init_set_max_threads(info, s->n_units < q->threads ? s->n_units + 1 : q->threads);
	hr_duckdb.init_set_init_data(info, s, scan_free);
}

static void init_worker(duckdb_init_info info)
{
	struct events_worker *w = calloc(1, sizeof(*w));

	if (w == NULL || (w->groups = hr__groups_new()) == NULL ||
	    (w->keys = malloc(HR_BATCH_EVENTS * sizeof(*w->keys))) == NULL) {
		if (w != NULL)
			events_worker_free(w);
		hr_duckdb.init_set_error(info, "out of memory");
		return;
	}
	hr_duckdb.init_set_init_data(info, w, events_worker_free);
}

static inline bool has_bit(const uint8_t *bits, uint32_t i)
{
	return (bits[i / 8] >> (i % 8) & 1) != 0;
}

static uint32_t select_rows(const struct events_scan *s, const struct hr_emit *e,
			    const uint8_t *files, uint32_t *rows)
{
	const uint64_t *ops = s->filter_ops ? s->q->prune.ops : NULL;
	uint32_t count = e->c.count, n = 0;
	const uint32_t *file = e->c.file;
	const uint16_t *op = e->c.op;

	for (uint32_t i = 0; i < count; i++) {
		rows[n] = i;
		if (ops != NULL &&
		    (op[i] >= HR_PRUNE_OPS || !(ops[op[i] / 64] >> (op[i] % 64) & 1)))
			continue;
		if (files != NULL && !has_bit(files, file[i]))
			continue;
		n++;
	}
	return n;
}

/* Returns the bitmap of files that were returned. NULL: out of memory. */
static _Atomic uint64_t *seen_files(const struct events_scan *s, uint32_t stream)
{
	_Atomic uint64_t *bits = atomic_load_explicit(&s->seen[stream], memory_order_acquire);
	_Atomic uint64_t *other = NULL;
	uint32_t n_files;

	if (bits != NULL || hr_stream_files(s->q->streams[stream].s, &n_files) < 0)
		return bits;
	bits = calloc(n_files / 64 + 1, sizeof(*bits));
	if (bits == NULL ||
	    atomic_compare_exchange_strong_explicit(&s->seen[stream], &other, bits,
						    memory_order_acq_rel, memory_order_acquire))
		return bits;
	free(bits); /* another thread has stored its bitmap first */
	return other;
}

/* Keeps the first row of each file that no thread has returned yet. */
static uint32_t leave_unseen(const struct hr_emit *e, _Atomic uint64_t *seen, uint32_t *rows,
			     uint32_t n_rows)
{
	uint32_t n = 0;
	const uint32_t *file_of = e->c.file;

	for (uint32_t k = 0; k < n_rows; k++) {
		uint32_t file = file_of[rows[k]];
		uint64_t bit = UINT64_C(1) << (file % 64);

		if (atomic_load_explicit(&seen[file / 64], memory_order_relaxed) & bit)
			continue;
		if (atomic_fetch_or_explicit(&seen[file / 64], bit, memory_order_relaxed) & bit)
			continue;
		rows[n++] = rows[k];
	}
	return n;
}

/* Keeps one row of each group, or of each file in a group. */
static int leave_distinct(const struct events_scan *s, struct events_worker *w)
{
	struct hr_groups *g = w->groups;
	unsigned loose = s->keys & ~w->constant;

	if (loose == 1u << HR_KEY_FILE)
		return hr__groups_distinct(g, w->emit.c.file, w->emit.st->names.n);
	for (uint32_t i = 0; loose == 0 && i < g->n_groups; i++)
		g->groups[i].n = 1;
	return 0;
}

static int group_rows(const struct events_scan *s, struct events_worker *w, uint32_t stream,
		      const uint8_t *files)
{
	struct hr_groups *g = w->groups;
	uint32_t n = select_rows(s, &w->emit, files, g->unordered);
	_Atomic uint64_t *seen;

	if (s->seen != NULL) {
		seen = seen_files(s, stream);
		if (seen == NULL)
			return -ENOMEM;
		n = leave_unseen(&w->emit, seen, g->unordered, n);
	}
	hr__groups_start(g, n, s->most_groups);
	w->constant = 1u << HR_KEY_STREAM;
	for (unsigned key = HR_KEY_STREAM + 1; key < HR_KEY_FILE; key++) {
		if (!(s->keys >> key & 1))
			continue;
		hr__emit_keys(&w->emit, key, g->unordered, n, w->keys);
		if (hr__groups_refine(g, w->keys))
			w->constant |= 1u << key;
	}
	hr__groups_finish(g, (s->keys & ~w->constant) != 0);
	return s->distinct ? leave_distinct(s, w) : 0;
}

/* Finds the files that match the WHERE clause. *ret NULL: there is no filter. */
static int wanted_files(const struct events_scan *s, uint32_t stream, const uint8_t **ret)
{
	struct file_filter *f = s->files != NULL ? &s->files[stream] : NULL;
	uint8_t *bits = f != NULL ? atomic_load_explicit(&f->bits, memory_order_acquire) : NULL;
	int r = 0;

	if (f != NULL && bits == NULL) {
		pthread_mutex_lock(&f->lock);
		bits = atomic_load_explicit(&f->bits, memory_order_relaxed);
		if (bits == NULL)
			r = hr__names_match(s->q, &s->q->streams[stream], &s->q->prune.path, &bits);
		if (r == 0)
			atomic_store_explicit(&f->bits, bits, memory_order_release);
		pthread_mutex_unlock(&f->lock);
	}
	*ret = bits;
	return r;
}

/*
 * Returns whether a batch contains one of the files. Its list has the difference of each id from
 * the previous one, zigzag coded.
 */
static bool names_file(const struct hr_stream *s, const Headrace__EventBatch *b,
		       const uint8_t *files)
{
	uint32_t id = 0;

	for (size_t i = 0; files != NULL && i < b->n_files; i++) {
		id += b->files[i] >> 1 ^ -(b->files[i] & 1);
		if (has_bit(files, hr_stream_file_number(s, id)))
			return true;
	}
	return files == NULL;
}

/* Reads a batch. A damaged one is empty, and counts for the notes. Returns 0 or -ENOMEM. */
static int events_load(const struct events_scan *s, struct events_worker *w, struct scan_unit unit)
{
	struct hr_qstream *st = &s->q->streams[unit.stream];
	const struct hr_batch_ref *ref = &st->s->batches[unit.batch];
	const Headrace__EventBatch *msg;
	const uint8_t *files;
	int r;

	w->group = w->at = w->groups->n_groups = 0;
	w->emit.st = st;
	if (ref->count > HR_BATCH_EVENTS) /* the index of a segment may be damaged */
		return hr_query_damage(s->q, st, ref->frame, -EBADMSG);
	if (s->want == 0 && s->keys == 0) { /* count(*): the rows have no columns */
		w->groups->n_groups = 1;
		w->groups->groups[0] = (struct hr_group){.n = ref->count};
		return 0;
	}
	r = wanted_files(s, unit.stream, &files);
	if (r < 0)
		return r;
	r = hr_batch_load(&w->reader, st->s, ref, &msg);
	if (r == 0 && !names_file(st->s, msg, files))
		return 0;
	if (r == 0)
		r = hr_batch_decode(w->reader.decoder, msg,
				    s->shows_flags ? s->want : hr_batch_needed(ref, s->want),
				    &w->emit.c);
	if (r < 0)
		return hr_query_damage(s->q, st, ref->frame, r);
	r = hr__names_need(s->q, st, s->names);
	if (r == 0)
		r = hr__emit_files(&w->emit);
	if (r == 0)
		r = hr__emit_tasks(&w->emit);
	if (r == 0)
		r = group_rows(s, w, unit.stream, files);
	return r;
}

static void emit_columns(const struct events_scan *s, const struct events_worker *w, uint32_t n,
			 duckdb_data_chunk output)
{
	const struct hr_groups *g = w->groups;
	const struct hr_group *group = &g->groups[w->group];

	for (unsigned i = 0; i < s->n_columns; i++) {
		unsigned column = s->columns[i];
		duckdb_vector vector;
		struct hr_query_out out;

		if (column == HR_EVENTS_END)
			continue;
		vector = hr_duckdb.data_chunk_get_vector(output, i);
		if (w->constant >> hr__event_columns[column].key & 1) {
			hr__emit_constant(&w->emit, column, group->row, n, vector);
			continue;
		}
		out = hr_query_out_of(vector);
		hr__event_columns[column].emit(&w->emit, g->rows + group->first + w->at, n, &out);
	}
}

static void scan_chunk(duckdb_function_info info, duckdb_data_chunk output)
{
	struct events_scan *s = hr_duckdb.function_get_init_data(info);
	struct events_worker *w = hr_duckdb.function_get_local_init_data(info);
	uint32_t n = (uint32_t)hr_duckdb.vector_size();

	while (w->group == w->groups->n_groups) {
		size_t next = atomic_fetch_add_explicit(&s->next, 1, memory_order_relaxed);

		if (next >= s->n_units) {
			hr_duckdb.data_chunk_set_size(output, 0);
			return;
		}
		if (events_load(s, w, s->units[next]) < 0) {
			hr_duckdb.function_set_error(info, "out of memory while reading events");
			return;
		}
		atomic_fetch_add_explicit(&s->q->batches_read, 1, memory_order_relaxed);
	}
	if (n > w->groups->groups[w->group].n - w->at)
		n = w->groups->groups[w->group].n - w->at;
	emit_columns(s, w, n, output);
	hr_duckdb.data_chunk_set_size(output, n);
	w->at += n;
	if (w->at == w->groups->groups[w->group].n) {
		w->group++;
		w->at = 0;
	}
}

int hr_events_register(struct hr_query *q)
{
	static const struct hr_table_function events = {events_bind, events_init, init_worker,
							scan_chunk, NULL};

	return hr_table_register(q, "hr_events", q, &events);
}

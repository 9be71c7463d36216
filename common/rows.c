/* SPDX-License-Identifier: Apache-2.0 */
#include "common/rows.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/ops.h"

void *hr_rows_in(struct hr_arena *a, size_t n, size_t size, void *ret_pointers)
{
	uint8_t *rows = n ? hr_arena_alloc(a, n * size) : NULL;
	void **pointers = rows ? hr_arena_alloc(a, n * sizeof(void *)) : NULL;

	for (size_t i = 0; i < n && pointers; i++)
		pointers[i] = rows + i * size;
	*(void **)ret_pointers = pointers;
	return pointers ? rows : NULL;
}

ProtobufCBinaryData hr_bytes_in(struct hr_arena *a, const void *data, size_t bytes)
{
	ProtobufCBinaryData d = {bytes, hr_arena_copy(a, data, bytes)};

	if (!d.data)
		d.len = 0;
	return d;
}

/* ---- roll-ups -------------------------------------------------------------------------------- */

static size_t sparse_bins(struct hr_arena *a, const uint32_t *bins, uint64_t **ret)
{
	uint64_t pairs[2 * HR_HIST_BINS];
	size_t used = hr_hist_sparse(bins, HR_HIST_BINS, pairs);

	*ret = used ? hr_arena_copy(a, pairs, used * sizeof(*pairs)) : NULL;
	return *ret ? used : 0;
}

static void rollup_message(struct hr_arena *a, const struct hr_rollup *r, Headrace__Rollup *m)
{
	headrace__rollup__init(m);
	m->proc = r->proc;
	m->op = r->op;
	m->mount = r->mount;
	m->scope = r->scope;
	m->count = r->count;
	m->bytes = r->bytes;
	m->errors = r->errors;
	m->dur_ns = r->dur_ns;
	m->max_dur_ns = r->max_dur_ns;
	m->n_size_hist = sparse_bins(a, r->size_hist, &m->size_hist);
	m->n_dur_hist = sparse_bins(a, r->dur_hist, &m->dur_hist);
}

/*
 * Makes rows of a window from t->v[from..to): rows of operations, or, if `sides`, of reading and
 * writing parts (op below HR_OP_FIRST).
 */
static size_t window_rows(struct hr_arena *a, const struct hr_rollups *t, uint64_t window,
			  uint32_t from, uint32_t to, bool sides, Headrace__Rollup ***ret)
{
	Headrace__Rollup *rows;
	size_t n = 0, used = 0;

	for (uint32_t k = from; k < to; k++)
		n += t->v[k].window == window && (t->v[k].op < HR_OP_FIRST) == sides;
	rows = hr_rows_in(a, n, sizeof(*rows), ret);
	for (uint32_t k = from; k < to && rows; k++)
		if (t->v[k].window == window && (t->v[k].op < HR_OP_FIRST) == sides)
			rollup_message(a, &t->v[k], &rows[used++]);
	return used;
}

uint32_t hr_rollups_message(struct hr_arena *a, const struct hr_rollups *t, uint64_t window,
			    uint32_t from, Headrace__RollupBatch *m)
{
	uint32_t i = from, n = 0;

	for (; i < t->n && n < HR_ROWS_MOST; i++)
		n += t->v[i].window == window;
	m->window_start_ns = window * HR_WINDOW_NS;
	m->window_ns = HR_WINDOW_NS;
	m->n_rows = window_rows(a, t, window, from, i, false, &m->rows);
	m->n_sides = window_rows(a, t, window, from, i, true, &m->sides);
	while (i < t->n && t->v[i].window != window)
		i++;
	return i;
}

/* ---- file records ---------------------------------------------------------------------------- */

static size_t few_bins(struct hr_arena *a, const struct hr_few_hist *h, uint64_t **ret)
{
	uint64_t pairs[2 * HR_FILE_BINS];
	size_t used = hr_few_hist_pairs(h, pairs);

	*ret = used ? hr_arena_copy(a, pairs, used * sizeof(*pairs)) : NULL;
	return *ret ? used : 0;
}

void hr_filerec_message(struct hr_arena *a, const struct hr_filerec *r, Headrace__FileRecord *m)
{
	const struct hr_filerec_moved *read = &r->moved[HR_WAY_READ];
	const struct hr_filerec_moved *written = &r->moved[HR_WAY_WRITE];

	headrace__file_record__init(m);
	m->proc = r->t.proc;
	m->file = r->t.file;
	m->api = r->t.api;
	m->opens = r->ops[HR_FILE_OPENS];
	m->reads = r->ops[HR_FILE_READS];
	m->writes = r->ops[HR_FILE_WRITES];
	m->seeks = r->ops[HR_FILE_SEEKS];
	m->stats = r->ops[HR_FILE_STATS];
	m->syncs = r->ops[HR_FILE_SYNCS];
	m->meta_ops = r->ops[HR_FILE_META];
	m->bytes_read = read->bytes;
	m->bytes_written = written->bytes;
	m->read_ns = read->ns;
	m->write_ns = written->ns;
	m->meta_ns = r->meta_ns;
	m->max_read_ns = read->max_ns;
	m->max_write_ns = written->max_ns;
	m->first_ns = r->first_ns;
	m->last_ns = r->last_ns;
	m->seq_reads = read->seq;
	m->consec_reads = read->consec;
	m->seq_writes = written->seq;
	m->consec_writes = written->consec;
	m->rw_switches = r->rw_switches;
	m->unaligned = r->unaligned;
	m->n_read_size_hist = few_bins(a, &read->hist, &m->read_size_hist);
	m->n_write_size_hist = few_bins(a, &written->hist, &m->write_size_hist);
}

/* ---- processes ------------------------------------------------------------------------------- */

char *hr_excluded_text(const Headrace__Process *p, uint64_t *ret_opens)
{
	size_t bytes = 1, n = 0;
	char *text;

	for (size_t i = 0; i < p->n_excluded; i++)
		bytes += p->excluded[i]->pattern.len + sizeof("=18446744073709551615,");
	text = calloc(1, bytes);
	*ret_opens = 0;
	for (size_t i = 0; i < p->n_excluded && text; i++) {
		const ProtobufCBinaryData *pattern = &p->excluded[i]->pattern;

		if (i > 0)
			text[n++] = ',';
		if (pattern->len > 0)
			memcpy(text + n, pattern->data, pattern->len);
		n += pattern->len;
		n += (size_t)sprintf(text + n, "=%" PRIu64, p->excluded[i]->opens);
		*ret_opens += p->excluded[i]->opens;
	}
	return text;
}

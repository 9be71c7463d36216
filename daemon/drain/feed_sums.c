/* SPDX-License-Identifier: Apache-2.0 */
/* Writes sums of probes: KERNEL entries for all operations, TALLY entries for unrecorded ones. */
#include "daemon/drain/feed_internal.h"

#include <stdlib.h>
#include <string.h>

#include "common/array.h"
#include "common/cause.h"
#include "common/ops.h"

#define SUMS_MOST   131072u /* maximum number of sums of processes that are not known yet */
#define ROWS_MOST   32768u  /* maximum number of rows before the sides of the maps are switched */
#define KERNEL_ROWS 512u
#define TALLY_ROWS  128u

/* ---- taking ---------------------------------------------------------------------------------- */

static struct feed_sum *feed_sums_add(struct hr_feed *f)
{
	if (f->n_sums == SUMS_MOST)
		return NULL;
	if (!hr_array_reserve(f->sums, f->n_sums, f->room_sums))
		return NULL;
	f->sums[f->n_sums] = (struct feed_sum){.taken_ns = f->turned_ns};
	return &f->sums[f->n_sums++];
}

/*
 * Drops a sum without room or without a known process. If its operations have no records (they are
 * in a tally, or the buffer was full), counts them as missed. Otherwise only the audit lacks them.
 */
static void miss(struct hr_feed *f, bool tally, uint32_t kind, uint64_t count)
{
	if (tally || kind == HR_SUM_LOST)
		f->missed += count;
}

static void summed(void *arg, const void *sum_key, const void *value)
{
	const struct hr_sum_key *key = sum_key;
	const struct hr_sum *sum = value;
	struct feed_sum *s = feed_sums_add(arg);

	if (!s) {
		miss(arg, false, key->kind, sum->count);
		return;
	}
	s->key = *key;
	s->sum = *sum;
}

static void tallied(void *arg, const void *tally_key, const void *value)
{
	const struct hr_tally_key *key = tally_key;
	const struct hr_tally *tally = value;
	struct hr_tally *copy = malloc(sizeof(*copy));
	struct feed_sum *s = copy ? feed_sums_add(arg) : NULL;

	if (!s) {
		miss(arg, true, key->kind, tally->sum.count);
		free(copy);
		return;
	}
	*copy = *tally;
	s->key = (struct hr_sum_key){
	    .image = key->image, .file = key->name, .op = key->op, .kind = key->kind};
	s->sum = tally->sum;
	s->tally = copy;
}

/* ---- rows ------------------------------------------------------------------------------------ */

/* Returns the cause of an operation that no call of the shim surrounds. */
static uint16_t own_cause(const struct feed_image *img, uint32_t kind)
{
	if (kind == HR_SUM_URING)
		return HR_CAUSE_URING;
	return img->state == FEED_ATTACHED ? HR_CAUSE_SYSCALL : HR_CAUSE_UNATTACHED;
}

static uint16_t cover_cause(uint16_t cell_op)
{
	unsigned api = hr_op_info(cell_op)->api;

	if (cell_op == HR_COVER_EXIT || api == HR_API_STDIO)
		return HR_CAUSE_STDIO;
	return cell_op == HR_COVER_AIO || api == HR_API_AIO ? HR_CAUSE_AIO : HR_CAUSE_SHIM;
}

static uint16_t cause_of(const struct feed_image *img, const struct feed_name *n,
			 const struct feed_sum *s)
{
	if (n && !hr__feed_recorded(n))
		return HR_CAUSE_EXCLUDED;
	if (s->tally && !n) /* the name of the file was dropped from the table */
		return HR_CAUSE_LOST;
	switch (s->key.kind) {
	case HR_SUM_LOST:
		return HR_CAUSE_LOST;
	case HR_SUM_FILL:
		return HR_CAUSE_FILL;
	case HR_SUM_FETCH:
		return HR_CAUSE_FETCH;
	case HR_SUM_FAULT:
		return HR_CAUSE_FAULT;
	default:
		return s->key.cell_op ? cover_cause(s->key.cell_op) : own_cause(img, s->key.kind);
	}
}

static const struct feed_name *feed_sums_name_of(struct hr_feed *f, const struct feed_sum *s)
{
	return HR_COVER_NAMED(s->key.cell_op) ? hr__feed_name_get(f, s->key.file) : NULL;
}

static void add_row(struct hr_feed *f, uint64_t proc, const struct hr_kernel_row *row)
{
	struct hr_kernel_sum sum = {proc, *row};

	if (hr_op_info(row->op)->bytes_rule == HR_BYTES_NONE)
		sum.row.bytes = 0;
	if (hr_kernel_sums_add(&f->rows, &sum) && row->cause == HR_CAUSE_LOST)
		f->missed += row->count;
}

static void row_of_sum(struct hr_feed *f, const struct feed_sum *s)
{
	const struct feed_name *n = feed_sums_name_of(f, s);

	add_row(f, s->proc,
		&(struct hr_kernel_row){
		    .file = !HR_COVER_NAMED(s->key.cell_op) ? s->key.file
			    : n				    ? n->hash
							    : 0,
		    .op = s->key.op,
		    .cause = cause_of(hr__feed_image(f, s->key.image, false), n, s),
		    .by_kernel = s->key.cell_op && n,
		    .count = s->sum.count,
		    .bytes = s->sum.bytes,
		    .errors = s->sum.errors,
		    .dur_ns = s->sum.dur_ns,
		});
}

static void write_rows(struct hr_feed *f);

uint16_t hr__feed_sum_op(struct hr_feed *f, const struct feed_image *img,
			 const struct hr_probe_op *r, bool shims)
{
	const struct feed_name *n = hr__feed_name_get(f, r->name);
	bool forgotten = (r->name && !n) || (r->name2 && !hr__feed_name_get(f, r->name2));
	uint16_t cause = n && !hr__feed_recorded(n) ? HR_CAUSE_EXCLUDED
			 : shims		    ? HR_CAUSE_SHIM
			 : forgotten		    ? HR_CAUSE_LOST
						    : own_cause(img, r->sum);

	if (f->rows.n >= ROWS_MOST)
		write_rows(f);
	add_row(f, img->proc,
		&(struct hr_kernel_row){
		    .file = n ? n->hash : 0,
		    .op = r->op,
		    .cause = cause,
		    .count = 1,
		    .bytes = r->ret > 0 ? (uint64_t)r->ret : 0,
		    .errors = r->ret < 0,
		    .dur_ns = r->dur_ns,
		});
	return cause;
}

static void make_tally(const struct feed_name *n, const struct feed_sum *s,
		       struct hr_tally_row *row)
{
	const struct hr_tally *t = s->tally;
	uint64_t known = 0;

	*row = (struct hr_tally_row){
	    .file = n->hash,
	    .count = t->sum.count,
	    .bytes = t->sum.bytes,
	    .errors = t->sum.errors,
	    .dur_ns = t->sum.dur_ns,
	    .max_dur_ns = t->max_dur_ns,
	    .first_ns = t->first_ns,
	    .last_ns = t->last_ns,
	    .op = s->key.op,
	    .runtime = n->verdict == HR__TRACED_RUNTIME,
	};
	_Static_assert(HR_TALLY_BINS == HR_PROBE_BINS, "one is copied to the other");
	memcpy(row->dur_hist, t->dur_hist, sizeof(row->dur_hist));
	for (uint32_t i = 0; i < HR_TALLY_BINS; i++)
		known += t->dur_hist[i];
	row->dur_hist[HR_TALLY_BINS - 1] += (uint32_t)(t->sum.count - known);
}

/* ---- entries --------------------------------------------------------------------------------- */

/* Writes one KERNEL entry with rows of the process at `from`. Returns the index of the next row. */
static uint32_t write_kernel(struct hr_feed *f, uint32_t from)
{
	const struct hr_kernel_sum *rows = f->rows.v;
	struct hr_entry_kernel *in =
	    hr__drain_begin(f->d, sizeof(*in) + KERNEL_ROWS * sizeof(in->rows[0]));
	uint32_t i;

	if (!in)
		return f->rows.n;
	in->proc = rows[from].proc;
	in->n = 0;
	for (i = from; i < f->rows.n && rows[i].proc == in->proc && in->n < KERNEL_ROWS; i++)
		in->rows[in->n++] = rows[i].row;
	hr__drain_commit(f->d, HR_ENTRY_KERNEL, sizeof(*in) + in->n * sizeof(in->rows[0]));
	return i;
}

static int compare_rows(const void *a, const void *b)
{
	const struct hr_kernel_sum *x = a, *y = b;

	return (x->proc > y->proc) - (x->proc < y->proc);
}

static void write_rows(struct hr_feed *f)
{
	if (f->rows.n > 0)
		qsort(f->rows.v, f->rows.n, sizeof(f->rows.v[0]), compare_rows);
	for (uint32_t at = 0; at < f->rows.n;)
		at = write_kernel(f, at);
	hr_kernel_sums_clear(&f->rows);
}

static uint32_t write_tally(struct hr_feed *f, uint32_t from)
{
	uint64_t proc = f->sums[from].proc;
	struct hr_entry_tally *in =
	    hr__drain_begin(f->d, sizeof(*in) + TALLY_ROWS * sizeof(in->rows[0]));
	uint32_t i;

	if (!in)
		return f->n_sums;
	in->proc = proc;
	in->n = 0;
	for (i = from; i < f->n_sums && f->sums[i].proc == proc && in->n < TALLY_ROWS; i++) {
		const struct feed_sum *s = &f->sums[i];
		const struct feed_name *n = hr__feed_name_get(f, s->key.file);

		if (s->tally && hr__feed_recorded(n))
			make_tally(n, s, &in->rows[in->n++]);
	}
	hr__drain_commit(f->d, HR_ENTRY_TALLY, sizeof(*in) + in->n * sizeof(in->rows[0]));
	return i;
}

/* Sorts by process, and puts the tallies of a process before its other sums. */
static int feed_sums_compare(const void *a, const void *b)
{
	const struct feed_sum *x = a, *y = b;

	if (x->proc != y->proc)
		return x->proc < y->proc ? -1 : 1;
	return (x->tally == NULL) - (y->tally == NULL);
}

/* Returns whether the NAME record of the sum's file has not been read yet. */
static bool is_early(const struct hr_feed *f, const struct feed_sum *s)
{
	return HR_COVER_NAMED(s->key.cell_op) && s->key.file > f->last_name &&
	       s->key.file != HR_PROBE_NO_NAME;
}

/* Returns whether s stays: for HR__FEED_FORGET_NS, if its image has no record yet. */
static bool is_kept(struct hr_feed *f, const struct feed_image *img, const struct feed_sum *s)
{
	if (s->sum.count == 0 || (img && img->left_out))
		return false;
	if (img || f->turned_ns - s->taken_ns < HR__FEED_FORGET_NS)
		return true;
	miss(f, s->tally != NULL, s->key.kind, s->sum.count);
	return false;
}

/*
 * Finds the process of each sum, and first writes the path of its file. As long as operations of an
 * image wait for a hello, the image's sums wait, too: after a hello, the shim may have recorded
 * these operations.
 */
static void feed_sums_prepare(struct hr_feed *f)
{
	uint32_t kept = 0;

	for (uint32_t i = 0; i < f->n_sums; i++) {
		struct feed_sum *s = &f->sums[i];
		struct feed_image *img = hr__feed_image(f, s->key.image, false);
		struct feed_name *n = s->key.cell_op ? NULL : hr__feed_name_get(f, s->key.file);

		if (!is_kept(f, img, s)) {
			free(s->tally);
			continue;
		}
		s->proc = img && !img->n_waiting && !is_early(f, s) ? img->proc : 0;
		if (s->proc && n && n->path) {
			hr__feed_path(img, n);
			hr__feed_flush(f, img);
		}
		f->sums[kept++] = *s;
	}
	f->n_sums = kept;
}

void hr__feed_sums(struct hr_feed *f, uint64_t now_ns)
{
	uint32_t waiting = 0, at;

	f->turned_ns = now_ns;
	f->turned_name = f->last_name;
	hr_probes_sums(f->probes, summed, tallied, f);
	feed_sums_prepare(f);
	if (f->n_sums > 0)
		qsort(f->sums, f->n_sums, sizeof(f->sums[0]), feed_sums_compare);
	while (waiting < f->n_sums && f->sums[waiting].proc == 0)
		waiting++;
	for (at = waiting; at < f->n_sums;)
		at = f->sums[at].tally ? write_tally(f, at) : at + 1;
	for (at = waiting; at < f->n_sums; at++) {
		row_of_sum(f, &f->sums[at]);
		free(f->sums[at].tally);
	}
	f->n_sums = waiting;
	write_rows(f);
}

void hr__feed_sums_end(struct hr_feed *f)
{
	for (uint32_t i = 0; i < f->n_sums; i++)
		miss(f, f->sums[i].tally != NULL, f->sums[i].key.kind, f->sums[i].sum.count);
}

void hr__feed_sums_done(struct hr_feed *f)
{
	for (uint32_t i = 0; i < f->n_sums; i++)
		free(f->sums[i].tally);
	free(f->sums);
	hr_kernel_sums_done(&f->rows);
}

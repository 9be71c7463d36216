/* SPDX-License-Identifier: Apache-2.0 */
/* What the kernel has added up: KERNEL entries of all of it, TALLY entries of what became no record. */
#include "daemon/feed_internal.h"

#include <stdlib.h>
#include <string.h>

#include "common/cause.h"
#include "common/ops.h"

#define SUMS_MOST   131072u /* that wait for their process */
#define DROPS_MOST  4096u   /* that wait for their sum */
#define KERNEL_ROWS 512u    /* in one entry */
#define TALLY_ROWS  128u

/* ---- taking ------------------------------------------------------------------------------------------- */

static struct feed_sum *add(struct hr_feed *f)
{
	if (f->n_sums == SUMS_MOST)
		return NULL;
	if (f->n_sums == f->room_sums) {
		uint32_t room = f->room_sums ? f->room_sums * 2 : 256;
		struct feed_sum *v = realloc(f->sums, room * sizeof(*v));

		if (!v)
			return NULL;
		f->sums = v;
		f->room_sums = room;
	}
	f->sums[f->n_sums] = (struct feed_sum){.taken_ns = f->turned_ns};
	return &f->sums[f->n_sums++];
}

/* There is no room for a sum, or nobody whose it is: pages and faults are no operations. */
static void miss(struct hr_feed *f, uint32_t kind, uint64_t count)
{
	if (kind != HR_SUM_FILL && kind != HR_SUM_FETCH && kind != HR_SUM_FAULT)
		f->missed += count;
}

static void summed(void *arg, const struct hr_sum_key *key, const struct hr_sum *sum)
{
	struct feed_sum *s = add(arg);

	if (!s) {
		miss(arg, key->kind, sum->count);
		return;
	}
	s->key = *key;
	s->sum = *sum;
}

static void tallied(void *arg, const struct hr_tally_key *key, const struct hr_tally *tally)
{
	struct hr_tally *copy = malloc(sizeof(*copy));
	struct feed_sum *s = copy ? add(arg) : NULL;

	if (!s) {
		miss(arg, key->kind, tally->sum.count);
		free(copy);
		return;
	}
	*copy = *tally;
	s->key = (struct hr_sum_key){
	    .image = key->image, .file = key->name, .op = key->op, .kind = key->kind};
	s->sum = tally->sum;
	s->tally = copy;
}

/* ---- what turned out to be the shim's ---------------------------------------------------------------- */

void hr__feed_drop(struct hr_feed *f, const struct hr_probe_op *r)
{
	const struct feed_name *n = hr__feed_name_get(f, r->name);

	/* What it reads of /proc for its hello is left out like anybody's. */
	if (f->n_drops == DROPS_MOST || (n && !hr__feed_recorded(n)))
		return;
	if (f->n_drops == f->room_drops) {
		uint32_t room = f->room_drops ? f->room_drops * 2 : 64;
		struct feed_drop *v = realloc(f->drops, room * sizeof(*v));

		if (!v)
			return;
		f->drops = v;
		f->room_drops = room;
	}
	f->drops[f->n_drops++] = (struct feed_drop){.image = r->image,
						    .name = r->name,
						    .bytes = r->ret > 0 ? (uint64_t)r->ret : 0,
						    .dur_ns = r->dur_ns,
						    .op = r->op,
						    .failed = r->ret < 0};
}

static struct feed_sum *sum_of(struct hr_feed *f, const struct feed_drop *d)
{
	for (uint32_t i = 0; i < f->n_sums; i++) {
		struct feed_sum *s = &f->sums[i];

		if (s->key.kind == HR_SUM_CALL && s->key.cell_op == 0 && s->key.image == d->image &&
		    s->key.file == d->name && s->key.op == d->op && !s->tally && s->sum.count > 0)
			return s;
	}
	return NULL;
}

/* From the process's own operations to the shim's. Those whose sum is not there yet wait: it comes within two turns. */
static void move_drops(struct hr_feed *f)
{
	uint32_t kept = 0;

	for (uint32_t i = 0; i < f->n_drops; i++) {
		const struct feed_drop d = f->drops[i];
		const struct feed_name *n = hr__feed_name_get(f, d.name);
		struct feed_sum *s = sum_of(f, &d), *shims;

		if (!s) {
			f->drops[kept++] = d;
			continue;
		}
		s->sum.count--;
		s->sum.bytes -= d.bytes;
		s->sum.dur_ns -= d.dur_ns;
		s->sum.errors -= d.failed;
		shims = add(f);
		if (!shims)
			continue;
		shims->key = (struct hr_sum_key){.image = d.image,
						 .file = n ? n->hash : 0,
						 .op = d.op,
						 .cell_op = HR_COVER_CALL};
		shims->sum = (struct hr_sum){1, d.bytes, d.failed, d.dur_ns};
	}
	f->n_drops = kept;
}

/* ---- rows --------------------------------------------------------------------------------------------- */

static uint16_t cause_of(const struct feed_image *img, const struct feed_name *n,
			 const struct feed_sum *s)
{
	const struct hr_sum_key *key = &s->key;

	if (s->tally && !n) /* its file has been forgotten */
		return HR_CAUSE_LOST;
	switch (key->kind) {
	case HR_SUM_LOST:
		return HR_CAUSE_LOST;
	case HR_SUM_URING:
		return HR_CAUSE_URING;
	case HR_SUM_FILL:
		return HR_CAUSE_FILL;
	case HR_SUM_FETCH:
		return HR_CAUSE_FETCH;
	case HR_SUM_FAULT:
		return HR_CAUSE_FAULT;
	default:
		break;
	}
	if (key->cell_op == HR_COVER_EXIT)
		return HR_CAUSE_STDIO;
	if (key->cell_op == HR_COVER_CALL)
		return HR_CAUSE_SHIM;
	if (key->cell_op == 0)
		return img->state == FEED_ATTACHED ? HR_CAUSE_SYSCALL : HR_CAUSE_UNATTACHED;
	switch (hr_op_info(key->cell_op)->api) {
	case HR_API_STDIO:
		return HR_CAUSE_STDIO;
	case HR_API_AIO:
		return HR_CAUSE_AIO;
	default:
		return HR_CAUSE_SHIM;
	}
}

static void make_row(const struct feed_image *img, const struct feed_name *n,
		     const struct feed_sum *s, struct hr_kernel_row *row)
{
	bool moved = hr_op_info(s->key.op)->bytes_rule != HR_BYTES_NONE;

	*row = (struct hr_kernel_row){
	    .file = s->key.cell_op ? s->key.file
		    : n		   ? n->hash
				   : 0,
	    .count = s->sum.count,
	    .bytes = moved ? s->sum.bytes : 0,
	    .errors = s->sum.errors,
	    .dur_ns = s->sum.dur_ns,
	    .op = s->key.op,
	    .cause = cause_of(img, n, s),
	};
	if (n && !hr__feed_recorded(n))
		row->cause = HR_CAUSE_EXCLUDED;
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

/* ---- entries ------------------------------------------------------------------------------------------ */

/* KERNEL rows of one process, from `from` on; returns where another one's begin. */
static uint32_t write_kernel(struct hr_feed *f, uint32_t from)
{
	uint64_t proc = f->sums[from].proc;
	struct hr_entry_kernel *in =
	    hr__drain_begin(f->d, sizeof(*in) + KERNEL_ROWS * sizeof(in->rows[0]));
	uint32_t i;

	if (!in)
		return f->n_sums;
	in->proc = proc;
	in->n = 0;
	for (i = from; i < f->n_sums && f->sums[i].proc == proc && in->n < KERNEL_ROWS; i++) {
		const struct feed_sum *s = &f->sums[i];
		const struct feed_name *n =
		    s->key.cell_op ? NULL : hr__feed_name_get(f, s->key.file);

		make_row(hr__feed_image(f, s->key.image, false), n, s, &in->rows[in->n++]);
	}
	hr__drain_commit(f->d, HR_ENTRY_KERNEL, sizeof(*in) + in->n * sizeof(in->rows[0]));
	return i;
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

/* By process; of one, tallies first. */
static int compare(const void *a, const void *b)
{
	const struct feed_sum *x = a, *y = b;

	if (x->proc != y->proc)
		return x->proc < y->proc ? -1 : 1;
	return (x->tally == NULL) - (y->tally == NULL);
}

/* Whether its file's NAME is in the buffer still. */
static bool is_early(const struct hr_feed *f, const struct feed_sum *s)
{
	return !s->key.cell_op && s->key.file > f->last_name && s->key.file != HR_PROBE_UNTOLD;
}

/* Of an image that has not been heard of, some time for that. */
static bool is_kept(struct hr_feed *f, const struct feed_image *img, const struct feed_sum *s)
{
	if (s->sum.count == 0 || (img && img->left_out))
		return false;
	if (img || f->turned_ns - s->taken_ns < HR__FEED_FORGET_NS)
		return true;
	miss(f, s->key.kind, s->sum.count);
	return false;
}

/*
 * Finds their processes, and has the paths of what is recorded said before its sums. While operations of an image wait, for a hello by
 * which they are the shim's, so do its sums.
 */
static void prepare(struct hr_feed *f)
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
	move_drops(f);
	prepare(f);
	if (f->n_sums == 0)
		return;
	qsort(f->sums, f->n_sums, sizeof(f->sums[0]), compare);
	while (waiting < f->n_sums && f->sums[waiting].proc == 0)
		waiting++;
	for (at = waiting; at < f->n_sums;)
		at = f->sums[at].tally ? write_tally(f, at) : at + 1;
	for (at = waiting; at < f->n_sums;)
		at = write_kernel(f, at);
	for (at = waiting; at < f->n_sums; at++)
		free(f->sums[at].tally);
	f->n_sums = waiting;
}

void hr__feed_sums_end(struct hr_feed *f)
{
	for (uint32_t i = 0; i < f->n_sums; i++)
		miss(f, f->sums[i].key.kind, f->sums[i].sum.count);
}

void hr__feed_sums_done(struct hr_feed *f)
{
	for (uint32_t i = 0; i < f->n_sums; i++)
		free(f->sums[i].tally);
	free(f->sums);
	free(f->drops);
}

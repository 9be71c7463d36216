/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/engine/kernel.h"

#include "common/array.h"
#include "common/cause.h"
#include "common/rows.h"
#include "daemon/engine/fold.h"

#define FRAME_ROWS 4096u

/* ---- the table ------------------------------------------------------------------------------- */

/* Returns the hash of a row's key. If another key has this hash, the caller tries the next hash. */
static uint64_t kernel_key(uint64_t proc, const struct hr_kernel_row *r)
{
	return hr_mix64(proc) ^ hr_mix64(hr_mix64(r->file) + ((uint32_t)r->op << 16 | r->cause));
}

static bool kernel_same(const struct hr_kernel_sum *a, const struct hr_kernel_sum *b)
{
	return a->proc == b->proc && a->row.file == b->row.file && a->row.op == b->row.op &&
	       a->row.cause == b->row.cause && a->row.by_kernel == b->row.by_kernel;
}

int hr_kernel_sums_add(struct hr_kernel_sums *t, const struct hr_kernel_sum *sum)
{
	uint64_t k = kernel_key(sum->proc, &sum->row);
	uint32_t i;

	while ((i = hr_map64_get(&t->by_key, k)) != HR_MAP64_NONE && !kernel_same(&t->v[i], sum))
		k++;
	if (i != HR_MAP64_NONE) {
		t->v[i].row.count += sum->row.count;
		t->v[i].row.bytes += sum->row.bytes;
		t->v[i].row.errors += sum->row.errors;
		t->v[i].row.dur_ns += sum->row.dur_ns;
		return 0;
	}
	if (!hr_array_reserve(t->v, t->n, t->room))
		return -ENOMEM;
	if (hr_map64_set(&t->by_key, k, t->n))
		return -ENOMEM;
	t->v[t->n++] = *sum;
	return 0;
}

void hr_kernel_sums_clear(struct hr_kernel_sums *t)
{
	t->n = 0;
	hr_map64_done(&t->by_key);
}

void hr_kernel_sums_done(struct hr_kernel_sums *t)
{
	free(t->v);
	hr_map64_done(&t->by_key);
	*t = (struct hr_kernel_sums){0};
}

/* ---- frames ---------------------------------------------------------------------------------- */

/* Makes one frame of sums from row `from` on. Returns the index where the next frame begins. */
static uint32_t emit_sums(struct hr_engine *e, uint32_t from)
{
	struct hr_kernel_sums *t = &e->kernel;
	uint32_t to = t->n - from < FRAME_ROWS ? t->n : from + FRAME_ROWS;
	struct hr_out *o;
	Headrace__KernelRecords *m = hr__out_message(e, HEADRACE__FRAME__BODY_KERNEL_RECORDS,
						     &headrace__kernel_records__descriptor, &o);
	Headrace__KernelRecord *rows;

	if (!m)
		return t->n;
	rows = hr_rows_in(&o->arena, to - from, sizeof(*rows), &m->rows);
	for (uint32_t i = from; i < to && rows; i++) {
		const struct hr_kernel_row *of = &t->v[i].row;
		Headrace__KernelRecord *row = &rows[m->n_rows++];

		headrace__kernel_record__init(row);
		row->proc = t->v[i].proc;
		row->file = (uint32_t)of->file;
		row->op = of->op;
		row->cause = of->cause;
		row->count = of->count;
		row->bytes = of->bytes;
		row->errors = of->errors;
		row->dur_ns = of->dur_ns;
	}
	hr__out_end(e, o);
	return to;
}

void hr__emit_kernel(struct hr_engine *e)
{
	uint32_t done = 0;

	if (e->kernel.n)
		hr__emit_names(e);
	while (done < e->kernel.n)
		done = emit_sums(e, done);
	hr_kernel_sums_clear(&e->kernel);
}

/* ---- entries --------------------------------------------------------------------------------- */

/*
 * Returns whether a row can be true. The row may have any values, because the process can write to
 * the memory from which it comes.
 */
static bool makes_sense(const struct hr_engine *e, const struct hr_kernel_row *row)
{
	return row->op < HR_OP_MAX && e->trait[row->op].class != HR_CLASS_NONE &&
	       row->cause > HR_CAUSE_NONE && row->cause < HR_CAUSE_END && row->count > 0 &&
	       row->count <= HR_COUNT_MOST && row->bytes <= HR_COUNT_MOST &&
	       row->errors <= row->count && row->dur_ns <= HR_COUNT_MOST;
}

/*
 * Returns the stream's id of the row's file, as in records of this process; 0: none. A file without
 * an id gets one, unless it is excluded or only the kernel knows its name.
 */
static uint32_t file_of(struct hr_engine *e, struct hr_proc *p, const struct hr_kernel_row *row)
{
	struct fold f = {.e = e, .p = p};
	uint64_t hash = row->file;
	uint32_t path;

	if (!hash || ((row->cause == HR_CAUSE_EXCLUDED || row->by_kernel) &&
		      hr_map64_get(&e->paths.by_hash, hash) == HR_MAP64_NONE))
		return 0;
	path = p ? hr__fold_path(&f, hash, 0) : hr_paths_use(&e->paths, hash, 0);
	if (path == UINT32_MAX) {
		e->failed = true;
		return 0;
	}
	return e->paths.v[path].id;
}

static void take_row(struct hr_engine *e, struct hr_proc *p, uint64_t proc,
		     const struct hr_kernel_row *row)
{
	struct hr_kernel_sum sum = {proc, *row};

	sum.row.file = file_of(e, p, row);
	sum.row.by_kernel = 0;
	if (row->cause == HR_CAUSE_LOST)
		hr_losses_add(&e->losses, &(struct hr_loss){proc, HR_LOSS_PROBE_FULL, row->op,
							    row->count, row->bytes, row->dur_ns});
	if (hr_kernel_sums_add(&e->kernel, &sum))
		e->failed = true;
}

static void kernel_count(struct hr_engine_stats *s, const struct hr_kernel_row *row)
{
	if (row->cause == HR_CAUSE_FILL || row->cause == HR_CAUSE_FETCH ||
	    row->cause == HR_CAUSE_FAULT || row->cause == HR_CAUSE_EXCLUDED)
		return;
	s->kernel_ops += row->count;
	if (row->cause == HR_CAUSE_SYSCALL || row->cause == HR_CAUSE_UNATTACHED ||
	    row->cause == HR_CAUSE_URING)
		s->kernel_added += row->count;
	else if (row->cause == HR_CAUSE_LOST)
		s->kernel_lost += row->count;
}

int hr__apply_kernel(struct hr_engine *e, const struct hr_entry_kernel *in)
{
	struct hr_proc *p = hr__proc_find(e, in->proc);

	if (in->proc == 0 || in->proc > e->last_proc ||
	    in->n > (in->h.bytes - sizeof(*in)) / sizeof(in->rows[0]))
		return -EBADMSG;
	if (p && p->id.deselected)
		return 0;
	if (p)
		p->id.probed = 1;
	for (uint64_t i = 0; i < in->n; i++) {
		if (makes_sense(e, &in->rows[i])) {
			kernel_count(&e->stats, &in->rows[i]);
			take_row(e, p, in->proc, &in->rows[i]);
			continue;
		}
		e->stats.hostile++;
		hr__loss(e, in->proc, HR_LOSS_HOSTILE, 0, 1);
	}
	if (e->kernel.n >= FRAME_ROWS)
		hr__emit_kernel(e);
	return 0;
}

/* ---- tallies --------------------------------------------------------------------------------- */

static bool tally_makes_sense(const struct hr_engine *e, const struct hr_tally_row *row)
{
	uint64_t n = 0;

	for (uint32_t i = 0; i < HR_TALLY_BINS; i++)
		n += row->dur_hist[i];
	return row->op >= HR_OP_FIRST && row->op < HR_OP_MAX &&
	       e->trait[row->op].class != HR_CLASS_NONE && row->count > 0 && n <= row->count &&
	       row->count <= UINT32_MAX && row->bytes <= HR_COUNT_MOST &&
	       row->errors <= row->count && row->dur_ns <= HR_COUNT_MOST &&
	       row->max_dur_ns <= row->dur_ns && row->first_ns <= row->last_ns;
}

static void tally_rollup(struct hr_engine *e, struct hr_proc *p, const struct hr_tally_row *row,
			 uint16_t mount)
{
	struct hr_rollup *r = hr_rollup_row(&e->rollups, row->last_ns / HR_WINDOW_NS, p->id.proc,
					    row->op, mount, row->runtime, &p->rollup_of[row->op]);

	if (!r) {
		e->failed = true;
		return;
	}
	r->count += row->count;
	r->errors += row->errors;
	r->dur_ns += row->dur_ns;
	if (row->max_dur_ns > r->max_dur_ns)
		r->max_dur_ns = row->max_dur_ns;
	for (uint32_t i = 0; i < HR_TALLY_BINS; i++)
		r->dur_hist[i] += row->dur_hist[i];
	if (e->trait[row->op].bytes_rule == HR_BYTES_NONE)
		return;
	r->bytes += row->bytes;
	r->size_hist[hr_log2_bin(row->bytes / row->count)] += (uint32_t)row->count;
}

static void take_tally(struct hr_engine *e, struct hr_proc *p, const struct hr_tally_row *row)
{
	struct fold f = {.e = e, .p = p};
	struct hr_op_trait trait = e->trait[row->op];
	uint32_t path = hr__fold_path(&f, row->file, row->runtime), i;
	struct hr_file_op op = {.class = trait.class,
				.failed = row->errors != 0,
				.offset = HR_OFFSET_NONE,
				.bytes = trait.bytes_rule == HR_BYTES_NONE ? 0 : row->bytes,
				.count = row->count,
				.start_ns = row->first_ns,
				.dur_ns = row->last_ns - row->first_ns};

	if (path == UINT32_MAX)
		return;
	tally_rollup(e, p, row, e->paths.v[path].mount);
	i = hr_filerec_get(&e->filerecs, p->id.proc, e->paths.v[path].id, trait.api,
			   &p->last_filerec);
	if (i == UINT32_MAX || hr_filerec_tally(&e->filerecs, i, &op, row->dur_ns, row->max_dur_ns))
		e->failed = true;
	e->stats.records += row->count;
	e->stats.bytes_moved += op.bytes;
	if (trait.class == HR_CLASS_READ)
		e->stats.read_bytes += op.bytes;
	if (trait.class == HR_CLASS_WRITE)
		e->stats.written_bytes += op.bytes;
	if (!p->id.read_data && !op.failed && !row->runtime && trait.class == HR_CLASS_READ)
		hr__attribute_read(e, p);
}

int hr__apply_tally(struct hr_engine *e, const struct hr_entry_tally *in)
{
	struct hr_proc *p = hr__proc_find(e, in->proc);

	if (!p || in->n > (in->h.bytes - sizeof(*in)) / sizeof(in->rows[0]))
		return -EBADMSG;
	if (p->id.deselected)
		return 0;
	p->id.probed = 1;
	for (uint64_t i = 0; i < in->n; i++)
		if (tally_makes_sense(e, &in->rows[i]))
			take_tally(e, p, &in->rows[i]);
		else
			hr__loss(e, in->proc, HR_LOSS_HOSTILE, 0, 1);
	return 0;
}

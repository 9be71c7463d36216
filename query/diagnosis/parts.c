/* SPDX-License-Identifier: Apache-2.0 */
#include "query/diagnosis/diagnosis.h"

#include <errno.h>
#include <stdlib.h>

#include "common/array.h"

const char *hr_part_name(enum hr_part part)
{
	static const char *const names[] = {
#define HR_PART(NAME, text, meaning) text,
#include "query/diagnosis/parts.def"
#undef HR_PART
	};

	return names[part];
}

const char *hr_phase_name(unsigned phase)
{
	static const char *const names[] = {[HR_PHASE_START] = "start",
					    [HR_PHASE_TRAIN] = "train",
					    [HR_PHASE_VALIDATION] = "validation",
					    [HR_PHASE_BETWEEN] = "between",
					    [HR_PHASE_END] = "end"};

	return names[phase];
}

bool hr_part_waits(unsigned part)
{
	return part >= HR_PART_WAIT_READ && part <= HR_PART_WAIT_END;
}

bool hr_phase_loops(unsigned phase)
{
	return phase == HR_PHASE_TRAIN || phase == HR_PHASE_VALIDATION;
}

struct maker {
	const struct hr_diagnosis *d;
	struct hr_parts *to;
	/* the rows that are made: those of a step, or outside steps of a phase */
	double ns[HR_PART_END];
	const struct hr_block *first; /* NULL: none */
	size_t added;		      /* the next of the life's */
};

static double least(double a, double b)
{
	return a < b ? a : b;
}

/* ---- blocks ---- */

/*
 * Adds this share of the operations of a block to parts. They take at most `ns`; returns the time
 * without one.
 */
static double put_io(struct maker *m, const _Atomic uint64_t *io, double ns, double share,
		     const enum hr_part parts[HR_SCAN_GROUPS])
{
	double total = 0, scale;

	for (unsigned i = 0; i < HR_SCAN_GROUPS; i++)
		total += (double)io[i];
	scale = total > ns ? ns / total : 1;
	for (unsigned i = 0; i < HR_SCAN_GROUPS; i++)
		m->ns[parts[i]] += (double)io[i] * scale * share;
	return ns - total * scale;
}

static const enum hr_part wait_parts[HR_SCAN_GROUPS] = {
    [HR_SCAN_READ] = HR_PART_WAIT_READ,	      [HR_SCAN_METADATA] = HR_PART_WAIT_METADATA,
    [HR_SCAN_WRITE] = HR_PART_WAIT_WRITE,     [HR_SCAN_SYNC] = HR_PART_WAIT_WRITE,
    [HR_SCAN_RUNTIME] = HR_PART_WAIT_RUNTIME,
};

static void put_fetch(struct maker *m, const struct hr_block *b, double ns)
{
	const struct hr_scan_ops *ops = &m->d->scan.ops[b->ops];
	const struct hr_spent *s = &m->d->spent[b->fetch];
	double waiting = s->io > 0 ? s->io_core / s->io : 0, share = 0;
	double rest = put_io(m, ops->ns, ns, 1 - waiting, wait_parts);

	m->ns[HR_PART_WAIT_CORE] += waiting * (ns - rest);
	if (s->ns > s->io)
		share = rest / (s->ns - s->io);
	m->ns[HR_PART_WAIT_CPU] += share * s->cpu;
	m->ns[HR_PART_WAIT_CORE] += share * s->core;
	m->ns[HR_PART_WAIT_FAULT] += share * s->fault;
	m->ns[HR_PART_WAIT_UNKNOWN] += share * s->unknown;
	/* A thread that sleeps while other threads of its process read waits for these reads. */
	m->ns[HR_PART_WAIT_ASLEEP] += put_io(m, ops->others, share * s->asleep, 1, wait_parts);
}

/* Who made the batch is unknown: the thread itself, or another one of its process. */
static void put_unknown(struct maker *m, const struct hr_block *b, double ns)
{
	const struct hr_scan_ops *ops = &m->d->scan.ops[b->ops];
	double rest = put_io(m, ops->ns, ns, 1, wait_parts);

	m->ns[HR_PART_WAIT_UNKNOWN] += put_io(m, ops->others, rest, 1, wait_parts);
}

static void put_gap(struct maker *m, const struct hr_block *b, double ns, int64_t imported)
{
	static const enum hr_part parts[HR_SCAN_GROUPS] = {
	    [HR_SCAN_READ] = HR_PART_OWN_READ,	   [HR_SCAN_METADATA] = HR_PART_OWN_METADATA,
	    [HR_SCAN_WRITE] = HR_PART_OWN_WRITE,   [HR_SCAN_SYNC] = HR_PART_OWN_SYNC,
	    [HR_SCAN_RUNTIME] = HR_PART_IMPORT_IO,
	};
	double rest = put_io(m, m->d->scan.ops[b->ops].ns, ns, 1, parts), imports = 0;

	if (b->phase == HR_PHASE_START && imported > b->from)
		imports = least(rest, rest * (double)(imported - b->from) / ns);
	m->ns[HR_PART_IMPORTS] += imports;
	m->ns[hr_phase_loops(b->phase) ? HR_PART_COMPUTE : HR_PART_OTHER] += rest - imports;
}

/* The part of a block that is none of its operations; that of a gap or fetch has several. */
static const uint8_t whole_parts[] = {[HR_BLOCK_WORKER_START] = HR_PART_WAIT_WORKER_START,
				      [HR_BLOCK_PREFETCH] = HR_PART_WAIT_PREFETCH,
				      [HR_BLOCK_HANDOVER] = HR_PART_WAIT_HANDOVER,
				      [HR_BLOCK_END] = HR_PART_WAIT_END,
				      [HR_BLOCK_UNKNOWN] = HR_PART_WAIT_UNKNOWN,
				      [HR_BLOCK_CREATE] = HR_PART_CREATE_WORKERS,
				      [HR_BLOCK_OPTIMIZER] = HR_PART_OPTIMIZER,
				      [HR_BLOCK_CHECKPOINT] = HR_PART_CHECKPOINT,
				      [HR_BLOCK_RESTORE] = HR_PART_RESTORE};

static void put_block(struct maker *m, const struct hr_block *b, int64_t imported)
{
	double ns = (double)(b->to - b->from);

	if (b->kind == HR_BLOCK_GAP)
		put_gap(m, b, ns, imported);
	else if (b->kind == HR_BLOCK_FETCH)
		put_fetch(m, b, ns);
	else if (b->kind == HR_BLOCK_UNKNOWN)
		put_unknown(m, b, ns);
	else
		m->ns[whole_parts[b->kind]] += ns;
}

/* Regions that were added up lie in time that counts as `from` so far. */
static double take(struct maker *m, enum hr_part from, enum hr_part to, double ns)
{
	double some = least(m->ns[from], ns);

	m->ns[from] -= some;
	m->ns[to] += some;
	return ns - some;
}

static void put_added(struct maker *m, const struct hr_train_life *life, int64_t end)
{
	for (; m->added < life->n_added && life->added[m->added].at < end; m->added++) {
		const struct hr_added *a = &life->added[m->added];
		enum hr_part part = whole_parts[a->kind];
		double left = take(m, HR_PART_COMPUTE, part, (double)a->ns);

		(void)take(m, HR_PART_OTHER, part, left);
	}
}

/* ---- rows ---- */

static uint64_t loader_of(const struct hr_train_life *life, const struct hr_block *b)
{
	return b->loop != HR_NO_LOOP ? life->loops[b->loop].loader : UINT64_MAX;
}

/* Rounds to whole nanoseconds so that the rows sum to the time from m->first to `end`. */
static int flush(struct maker *m, const struct hr_train_life *life, int64_t end)
{
	uint64_t left = m->first != NULL ? (uint64_t)(end - m->first->from) : 0;

	put_added(m, life, end);
	for (unsigned part = 0; left > 0 && part < HR_PART_END; part++) {
		uint64_t ns = (uint64_t)(m->ns[part] + 0.5);

		ns = ns < left ? ns : left;
		m->ns[part] = 0;
		if (ns == 0)
			continue;
		if (!hr_array_reserve(m->to->rows, m->to->n, m->to->room))
			return -ENOMEM;
		left -= ns;
		m->to->rows[m->to->n++] = (struct hr_parts_row){.stream = life->stream,
								.rank = life->rank,
								.proc = life->proc,
								.step = m->first->step,
								.epoch = m->first->epoch,
								.loader = loader_of(life, m->first),
								.start_ns = m->first->from,
								.ns = ns,
								.phase = m->first->phase,
								.part = (uint8_t)part};
	}
	if (left > 0 && m->to->n > 0)
		m->to->rows[m->to->n - 1].ns += left;
	m->first = NULL;
	return 0;
}

static int64_t end_of_imports(const struct maker *m, const struct hr_train_life *life)
{
	int64_t end = INT64_MIN;

	for (size_t i = 0; i < life->n && life->blocks[i].phase == HR_PHASE_START; i++) {
		int64_t runtime = m->d->scan.ops[life->blocks[i].ops].runtime_end;

		if (runtime != 0 && runtime > end)
			end = runtime;
	}
	return end;
}

static int put_life(struct maker *m, const struct hr_train_life *life)
{
	int64_t imported = end_of_imports(m, life);
	int r = 0;

	m->added = 0;
	for (size_t i = 0; r == 0 && i < life->n; i++) {
		const struct hr_block *b = &life->blocks[i];

		if (m->first != NULL && (m->first->step != b->step || m->first->epoch != b->epoch ||
					 m->first->phase != b->phase || m->first->loop != b->loop))
			r = flush(m, life, b->from);
		if (m->first == NULL)
			m->first = b;
		put_block(m, b, imported);
	}
	return r < 0 ? r : flush(m, life, life->to);
}

int hr__parts_make(struct hr_diagnosis *d)
{
	struct maker m = {.d = d, .to = &d->parts};
	int r = 0;

	for (size_t i = 0; r == 0 && i < d->lives.n; i++)
		r = put_life(&m, &d->lives.list[i]);
	return r;
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "query/diagnosis/parts.h"

#include <errno.h>
#include <stdlib.h>

#include "common/array.h"
#include "query/diagnosis/life.h"

/* A page of a mapped file takes at most this long. */
#define FAULT_NS 20e6

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

/* What a fetch did while it had no operation under way, as shares of that time. */
struct shares {
	double cpu, core, fault, asleep, unknown;
};

struct maker {
	const struct hr_scan *scan;
	const struct hr_lives *lives;
	double *io_ns, *cached_ns; /* of each fetch */
	struct shares *shares;	   /* of each fetch */
	struct hr_parts *to;
	/* the rows that are made: those of a step, or outside steps of a phase */
	double ns[HR_PART_END];
	const struct hr_block *first; /* NULL: none */
};

/* ---- fetches ---- */

static double sum(const _Atomic uint64_t *ns)
{
	double total = 0;

	for (unsigned i = 0; i < HR_SCAN_GROUPS; i++)
		total += (double)ns[i];
	return total;
}

static void add_io(struct maker *m, uint32_t fetch, uint32_t ops)
{
	m->io_ns[fetch] += sum(m->scan->ops[ops].ns);
	m->cached_ns[fetch] += (double)m->scan->ops[ops].cached_ns;
}

static void add_up_fetches(struct maker *m)
{
	for (size_t i = 0; i < m->lives->n_fetches; i++)
		add_io(m, (uint32_t)i, m->lives->fetches[i].ops);
	for (size_t i = 0; i < m->lives->n; i++) {
		const struct hr_life *life = &m->lives->list[i];

		for (size_t k = 0; k < life->n; k++)
			if (life->blocks[k].kind == HR_BLOCK_FETCH)
				add_io(m, life->blocks[k].fetch, life->blocks[k].ops);
	}
}

static double least(double a, double b)
{
	return a < b ? a : b;
}

/* The time without operations, and the CPU time in it. */
static double rest_of(const struct maker *m, size_t fetch, double *ret_cpu)
{
	const struct hr_fetch *f = &m->lives->fetches[fetch];
	double ns = (double)(f->to - f->from), rest = ns - least(m->io_ns[fetch], ns);
	double cpu = (double)f->cpu_ns - m->cached_ns[fetch];

	*ret_cpu = f->cpu_ns == UINT64_MAX || cpu < 0 ? 0 : least(cpu, rest);
	return rest;
}

/* Fetches [first, first + n) of one thread, which reports its waits for a core now and then. */
static void share(struct maker *m, size_t first, size_t n)
{
	double left = 0, core_wait = 0, cpu;

	for (size_t i = first; i < first + n; i++) {
		left += rest_of(m, i, &cpu);
		left -= cpu;
		core_wait += (double)m->lives->fetches[i].core_wait_ns;
	}
	for (size_t i = first; i < first + n; i++) {
		const struct hr_fetch *f = &m->lives->fetches[i];
		double rest = rest_of(m, i, &cpu), idle = rest - cpu, core, fault;
		struct shares *s = &m->shares[i];

		if (f->cpu_ns == UINT64_MAX || rest <= 0) {
			s->unknown = 1;
			continue;
		}
		core = left > 0 ? idle * least(1, core_wait / left) : 0;
		fault = least(idle - core, (double)f->major_faults * FAULT_NS);
		*s = (struct shares){.cpu = cpu / rest,
				     .core = core / rest,
				     .fault = fault / rest,
				     .asleep = (idle - core - fault) / rest};
	}
}

static void share_all(struct maker *m)
{
	const struct hr_lives *l = m->lives;

	for (size_t i = 0; i < l->n_workers; i++)
		share(m, l->workers[i].first, l->workers[i].n);
	/* without workers: the fetches of a life follow each other */
	for (size_t i = 0, n; i < l->n_fetches; i += n) {
		n = 1;
		if (l->fetches[i].worker != HR_NO_FETCH)
			continue;
		while (i + n < l->n_fetches && l->fetches[i + n].worker == HR_NO_FETCH)
			n++;
		share(m, i, n);
	}
}

/* ---- blocks ---- */

/* Adds the operations of a block to parts, at most `ns` in all; returns the time without one. */
static double put_io(struct maker *m, const _Atomic uint64_t *io, double ns,
		     const enum hr_part parts[HR_SCAN_GROUPS])
{
	double total = sum(io), scale = total > ns ? ns / total : 1;

	for (unsigned i = 0; i < HR_SCAN_GROUPS; i++)
		m->ns[parts[i]] += (double)io[i] * scale;
	return ns - total * scale;
}

static void put_fetch(struct maker *m, const struct hr_block *b, double ns)
{
	static const enum hr_part parts[HR_SCAN_GROUPS] = {
	    [HR_SCAN_READ] = HR_PART_WAIT_READ,	      [HR_SCAN_METADATA] = HR_PART_WAIT_METADATA,
	    [HR_SCAN_WRITE] = HR_PART_WAIT_WRITE,     [HR_SCAN_SYNC] = HR_PART_WAIT_WRITE,
	    [HR_SCAN_RUNTIME] = HR_PART_WAIT_RUNTIME,
	};
	const struct hr_scan_ops *ops = &m->scan->ops[b->ops];
	const struct shares *s = &m->shares[b->fetch];
	double rest = put_io(m, ops->ns, ns, parts);

	m->ns[HR_PART_WAIT_CPU] += rest * s->cpu;
	m->ns[HR_PART_WAIT_CORE] += rest * s->core;
	m->ns[HR_PART_WAIT_FAULT] += rest * s->fault;
	m->ns[HR_PART_WAIT_UNKNOWN] += rest * s->unknown;
	/* A thread that sleeps while other threads of its process read waits for these reads. */
	m->ns[HR_PART_WAIT_ASLEEP] += put_io(m, ops->others, rest * s->asleep, parts);
}

static void put_gap(struct maker *m, const struct hr_block *b, double ns, int64_t imported)
{
	static const enum hr_part parts[HR_SCAN_GROUPS] = {
	    [HR_SCAN_READ] = HR_PART_OWN_READ,	 [HR_SCAN_METADATA] = HR_PART_OWN_METADATA,
	    [HR_SCAN_WRITE] = HR_PART_OWN_WRITE, [HR_SCAN_SYNC] = HR_PART_OWN_SYNC,
	    [HR_SCAN_RUNTIME] = HR_PART_IMPORTS,
	};
	double rest = put_io(m, m->scan->ops[b->ops].ns, ns, parts), imports = 0;

	if (b->phase == HR_PHASE_START && imported > b->from)
		imports = least(rest, rest * (double)(imported - b->from) / ns);
	m->ns[HR_PART_IMPORTS] += imports;
	m->ns[b->phase == HR_PHASE_TRAIN || b->phase == HR_PHASE_VALIDATION ? HR_PART_COMPUTE
									    : HR_PART_OTHER] +=
	    rest - imports;
}

static void put_block(struct maker *m, const struct hr_block *b, int64_t imported)
{
	static const uint8_t parts[] = {[HR_BLOCK_WORKER_START] = HR_PART_WAIT_WORKER_START,
					[HR_BLOCK_PREFETCH] = HR_PART_WAIT_PREFETCH,
					[HR_BLOCK_HANDOVER] = HR_PART_WAIT_HANDOVER,
					[HR_BLOCK_END] = HR_PART_WAIT_END,
					[HR_BLOCK_UNKNOWN] = HR_PART_WAIT_UNKNOWN,
					[HR_BLOCK_CREATE] = HR_PART_CREATE_WORKERS,
					[HR_BLOCK_OPTIMIZER] = HR_PART_OPTIMIZER,
					[HR_BLOCK_CHECKPOINT] = HR_PART_CHECKPOINT,
					[HR_BLOCK_RESTORE] = HR_PART_RESTORE};
	double ns = (double)(b->to - b->from);

	if (b->kind == HR_BLOCK_GAP)
		put_gap(m, b, ns, imported);
	else if (b->kind == HR_BLOCK_FETCH)
		put_fetch(m, b, ns);
	else
		m->ns[parts[b->kind]] += ns;
}

/* ---- rows ---- */

/* Rounds to whole nanoseconds so that the rows sum to the time from m->first to `end`. */
static int flush(struct maker *m, const struct hr_life *life, int64_t end)
{
	uint64_t left = m->first != NULL ? (uint64_t)(end - m->first->from) : 0;

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

static int64_t end_of_imports(const struct maker *m, const struct hr_life *life)
{
	int64_t end = INT64_MIN;

	for (size_t i = 0; i < life->n && life->blocks[i].phase == HR_PHASE_START; i++) {
		int64_t runtime = m->scan->ops[life->blocks[i].ops].runtime_end;

		if (runtime != 0 && runtime > end)
			end = runtime;
	}
	return end;
}

static int put_life(struct maker *m, const struct hr_life *life)
{
	int64_t imported = end_of_imports(m, life);
	int r = 0;

	for (size_t i = 0; r == 0 && i < life->n; i++) {
		const struct hr_block *b = &life->blocks[i];

		if (m->first != NULL && (m->first->step != b->step || m->first->epoch != b->epoch ||
					 m->first->phase != b->phase))
			r = flush(m, life, b->from);
		if (m->first == NULL)
			m->first = b;
		put_block(m, b, imported);
	}
	return r < 0 ? r : flush(m, life, life->to);
}

int hr_parts_make(struct hr_query *q, struct hr_parts *ret)
{
	struct hr_lives lives = {0};
	struct hr_scan scan = {0};
	struct maker m = {.scan = &scan, .lives = &lives, .to = ret};
	int r = hr__lives_read(q, &scan, &lives);

	if (r == 0)
		r = hr__scan_run(q, &scan);
	if (r == 0) {
		m.io_ns = calloc(lives.n_fetches + 1, sizeof(*m.io_ns));
		m.cached_ns = calloc(lives.n_fetches + 1, sizeof(*m.cached_ns));
		m.shares = calloc(lives.n_fetches + 1, sizeof(*m.shares));
		if (m.io_ns == NULL || m.cached_ns == NULL || m.shares == NULL)
			r = -ENOMEM;
	}
	if (r == 0) {
		add_up_fetches(&m);
		share_all(&m);
	}
	for (size_t i = 0; r == 0 && i < lives.n; i++)
		r = put_life(&m, &lives.list[i]);
	free(m.io_ns);
	free(m.cached_ns);
	free(m.shares);
	hr__scan_done(&scan);
	hr__lives_done(&lives);
	return r;
}

void hr_parts_done(struct hr_parts *p)
{
	free(p->rows);
}

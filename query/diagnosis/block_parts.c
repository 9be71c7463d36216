/* SPDX-License-Identifier: Apache-2.0 */
#include "query/diagnosis/parts_internal.h"

struct cut {
	const struct hr_diagnosis *d;
	double *ns;
};

/*
 * Adds `share` times the duration of each group of operations to the part of this group. The groups
 * together add at most `share` times `ns`. Returns the part of `ns` without operations.
 */
static double put_io(struct cut *c, const uint64_t *io, double ns, double share,
		     const enum hr_part parts[HR_SCAN_GROUPS])
{
	double total = 0, scale;

	for (unsigned i = 0; i < HR_SCAN_GROUPS; i++)
		total += (double)io[i];
	scale = total > ns ? ns / total : 1;
	for (unsigned i = 0; i < HR_SCAN_GROUPS; i++)
		c->ns[parts[i]] += (double)io[i] * scale * share;
	return ns - total * scale;
}

static const enum hr_part wait_parts[HR_SCAN_GROUPS] = {
    [HR_SCAN_READ] = HR_PART_WAIT_READ,	      [HR_SCAN_METADATA] = HR_PART_WAIT_METADATA,
    [HR_SCAN_WRITE] = HR_PART_WAIT_WRITE,     [HR_SCAN_SYNC] = HR_PART_WAIT_WRITE,
    [HR_SCAN_RUNTIME] = HR_PART_WAIT_RUNTIME,
};

static void put_fetch(struct cut *c, const struct hr_block *b, double ns)
{
	const struct hr_block_ops *ops = &c->d->ops[b->ops];
	const struct hr_spent *s = &c->d->spent[b->fetch];
	double waiting = s->io > 0 ? s->io_core / s->io : 0, share = 0;
	double rest = put_io(c, ops->ns, ns, 1 - waiting, wait_parts);

	c->ns[HR_PART_WAIT_CORE] += waiting * (ns - rest);
	if (s->ns > s->io)
		share = rest / (s->ns - s->io);
	c->ns[HR_PART_WAIT_CPU] += share * s->cpu;
	c->ns[HR_PART_WAIT_CORE] += share * s->core;
	c->ns[HR_PART_WAIT_FAULT] += share * s->fault;
	c->ns[HR_PART_WAIT_UNKNOWN] += share * s->unknown;
	c->ns[HR_PART_WAIT_SLEEP] += share * s->sleep;
	c->ns[HR_PART_WAIT_NETWORK] += share * s->network;
	c->ns[HR_PART_WAIT_LOCK] += share * s->lock;
	/*
	 * If the thread sleeps while other threads of its process read, it probably waits for them.
	 */
	c->ns[HR_PART_WAIT_ASLEEP] += put_io(c, ops->others, share * s->asleep, 1, wait_parts);
}

/* The maker of the batch is unknown: any thread of this process may have made it. */
static void put_unknown(struct cut *c, const struct hr_block *b, double ns)
{
	const struct hr_block_ops *ops = &c->d->ops[b->ops];
	double rest = put_io(c, ops->ns, ns, 1, wait_parts);

	c->ns[HR_PART_WAIT_UNKNOWN] += put_io(c, ops->others, rest, 1, wait_parts);
}

static void put_gap(struct cut *c, const struct hr_block *b, double ns, int64_t imported)
{
	static const enum hr_part parts[HR_SCAN_GROUPS] = {
	    [HR_SCAN_READ] = HR_PART_OWN_READ,	   [HR_SCAN_METADATA] = HR_PART_OWN_METADATA,
	    [HR_SCAN_WRITE] = HR_PART_OWN_WRITE,   [HR_SCAN_SYNC] = HR_PART_OWN_SYNC,
	    [HR_SCAN_RUNTIME] = HR_PART_IMPORT_IO,
	};
	double rest = put_io(c, c->d->ops[b->ops].ns, ns, 1, parts), imports = 0;

	if (b->phase == HR_PHASE_START && imported > b->from)
		imports = fmin(rest, rest * (double)(imported - b->from) / ns);
	c->ns[HR_PART_IMPORTS] += imports;
	c->ns[hr_phase_loops(b->phase) ? HR_PART_COMPUTE : HR_PART_OTHER] += rest - imports;
}

/* The part of each kind of block, without the time of operations. */
static const uint8_t whole_parts[] = {[HR_BLOCK_WORKER_START] = HR_PART_WAIT_WORKER_START,
				      [HR_BLOCK_PREFETCH] = HR_PART_WAIT_PREFETCH,
				      [HR_BLOCK_HANDOVER] = HR_PART_WAIT_HANDOVER,
				      [HR_BLOCK_END] = HR_PART_WAIT_END,
				      [HR_BLOCK_UNKNOWN] = HR_PART_WAIT_UNKNOWN,
				      [HR_BLOCK_HIDDEN] = HR_PART_WAIT_HIDDEN,
				      [HR_BLOCK_BACKWARD] = HR_PART_BACKWARD,
				      [HR_BLOCK_COLLECTIVE] = HR_PART_COLLECTIVE,
				      [HR_BLOCK_CREATE] = HR_PART_CREATE_WORKERS,
				      [HR_BLOCK_OPTIMIZER] = HR_PART_OPTIMIZER,
				      [HR_BLOCK_CHECKPOINT] = HR_PART_CHECKPOINT,
				      [HR_BLOCK_RESTORE] = HR_PART_RESTORE};

enum hr_part hr__whole_part(enum hr_block_kind kind)
{
	return whole_parts[kind];
}

void hr__block_parts(const struct hr_diagnosis *d, const struct hr_block *b, int64_t imported,
		     double parts[HR_PART_END])
{
	struct cut cut = {d, parts}, *c = &cut;
	double ns = (double)(b->to - b->from);

	if (b->kind == HR_BLOCK_GAP)
		put_gap(c, b, ns, imported);
	else if (b->kind == HR_BLOCK_FETCH)
		put_fetch(c, b, ns);
	else if (b->kind == HR_BLOCK_UNKNOWN)
		put_unknown(c, b, ns);
	else
		parts[whole_parts[b->kind]] += ns;
}

void hr__whole_ns(const double parts[HR_PART_END], uint64_t all, uint64_t ret[HR_PART_END])
{
	unsigned largest = 0;

	for (unsigned part = 0; part < HR_PART_END; part++) {
		uint64_t ns = (uint64_t)(parts[part] + 0.5);

		ret[part] = ns < all ? ns : all;
		all -= ret[part];
		largest = ret[part] > ret[largest] ? part : largest;
	}
	ret[largest] += all;
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The totals that clients count in shared memory: operations for which a ring had no room, and
 * opens of files that are excluded by default. The engine ignores a total that shrinks or grows
 * impossibly fast: the client is hostile.
 */
#include <errno.h>

#include "daemon/engine/state.h"

/* ---- lost operations, and operations of unattached children ---------------------------------- */

bool hr__counts_no_operations(uint32_t op, enum hr_loss_reason *ret)
{
	switch (op) {
	case HR_CTL_REGION:
		*ret = HR_LOSS_REGIONS;
		return true;
	case HR_CTL_LIBRARY:
		*ret = HR_LOSS_LIBRARY;
		return true;
	case HR_CTL_PROGRAM:
		*ret = HR_LOSS_OUT_OF_REACH;
		return true;
	default:
		return false;
	}
}

static struct hr_lost_row *lost_row(struct hr_ring_state *ring, uint32_t op)
{
	struct hr_lost_row *v;

	for (uint32_t i = 0; i < ring->kept.n_lost; i++)
		if (ring->lost[i].op == op)
			return &ring->lost[i];
	v = realloc(ring->lost, (ring->kept.n_lost + 1) * sizeof(*v));
	if (!v)
		return NULL;
	ring->lost = v;
	v[ring->kept.n_lost] = (struct hr_lost_row){.op = op};
	return &v[ring->kept.n_lost++];
}

/*
 * Returns the totals of an op at the last read. op + HR_LOST_STRAYS: totals of unattached children
 * (strays). NULL: no such op.
 */
static struct hr_lost_row *lost_seen(const struct hr_engine *e, struct hr_ring_state *ring,
				     uint64_t op)
{
	enum hr_loss_reason reason;

	if (!hr__counts_no_operations(op % HR_OP_MAX, &reason) &&
	    (op >= HR_LOST_STRAYS + HR_OP_MAX || !e->trait[op % HR_OP_MAX].class))
		return NULL;
	return lost_row(ring, (uint32_t)op);
}

int hr__apply_lost(struct hr_engine *e, const struct hr_entry_lost *in)
{
	struct hr_proc *p = hr__proc_find(e, in->proc);
	struct hr_ring_state *ring = p ? hr__ring(p, in->map, in->ring) : NULL;

	if (!ring || in->n > (in->h.bytes - sizeof(*in)) / sizeof(in->rows[0]))
		return -EBADMSG;
	for (uint32_t i = 0; i < in->n; i++) {
		const struct hr_lost_row *row = &in->rows[i];
		struct hr_lost_row *seen = lost_seen(e, ring, row->op);
		struct hr_lost more = row->total;
		bool stray = row->op >= HR_LOST_STRAYS;
		enum hr_loss_reason reason;

		if (seen) {
			more.count -= seen->total.count;
			more.bytes -= seen->total.bytes;
			more.ticks -= seen->total.ticks;
		}
		if (!seen || more.count > HR_COUNT_MOST || more.bytes > HR_COUNT_MOST ||
		    more.ticks > HR_COUNT_MOST) {
			e->stats.hostile++;
			hr__loss(e, in->proc, HR_LOSS_HOSTILE, 0, 1);
			continue;
		}
		seen->total = row->total;
		if (hr__counts_no_operations(row->op % HR_OP_MAX, &reason)) {
			hr__loss(e, in->proc, reason, 0, more.count);
			continue;
		}
		e->stats.lost += more.count;
		e->stats.stray += stray ? more.count : 0;
		hr_losses_add(&e->losses, &(struct hr_loss){
					      in->proc, stray ? HR_LOSS_STRAY : HR_LOSS_RING_FULL,
					      (uint32_t)(row->op % HR_OP_MAX), more.count,
					      more.bytes, hr_ticks_span_ns(&e->line, more.ticks)});
	}
	return 0;
}

/* ---- excluded opens -------------------------------------------------------------------------- */

int hr__apply_excluded(struct hr_engine *e, const struct hr_entry_excluded *in)
{
	struct hr_proc *p = hr__proc_find(e, in->proc);

	if (!p || p->end_ns)
		return -EBADMSG;
	for (uint32_t kind = 0; kind < HR_EXCLUDED_KINDS; kind++) {
		uint64_t more = in->total[kind] - p->id.excluded[kind];

		if (more > HR_COUNT_MOST) {
			e->stats.hostile++;
			hr__loss(e, in->proc, HR_LOSS_HOSTILE, 0, 1);
			continue;
		}
		if (!more)
			continue;
		p->id.excluded[kind] = in->total[kind];
		p->excluded_unsent = e->excluded_unsent = true;
	}
	return 0;
}

void hr__excluded_due(struct hr_engine *e)
{
	for (struct hr_proc *p = e->first; p && e->excluded_unsent; p = p->next)
		if (p->excluded_unsent)
			hr__proc_dirty(e, p);
	e->excluded_unsent = false;
}

const char *hr__excluded_pattern(const struct hr_proc *p, uint32_t kind, size_t *ret_bytes)
{
	const char *at = p->defaults ? p->defaults : "", *end = at + p->defaults_bytes;

	while (kind-- && at < end)
		at += strnlen(at, (size_t)(end - at)) + 1;
	*ret_bytes = at < end ? strnlen(at, (size_t)(end - at)) : 0;
	return at;
}

/*
 * ---- processes that ended before headraced's answer reached them ----
 *
 * A client whose connection breaks connects again. If headraced is killed after it has journaled
 * the first hello, or reads this hello after the process has ended, the second hello may come
 * later. So the loss waits for some seconds.
 */

#define MISSED_WAIT_NS UINT64_C(5000000000)

void hr__missed_add(struct hr_engine *e, uint64_t proc, int32_t pid, uint32_t image)
{
	if (pid > 0 && e->n_missed < HR_MISSED_MOST)
		e->missed[e->n_missed++] = (struct hr_missed){e->now_ns, proc, pid, image};
	else
		hr__loss(e, proc, HR_LOSS_UNATTACHED, 0, 1);
}

void hr__missed_came(struct hr_engine *e, int32_t pid, uint32_t image)
{
	for (uint32_t i = 0; i < e->n_missed; i++) {
		const struct hr_missed *m = &e->missed[i];

		/* the node page has only the pid of a client (attach_lost.c) */
		if (m->pid != pid || (m->image != image && m->image != 0))
			continue;
		e->missed[i] = e->missed[--e->n_missed];
		return;
	}
}

void hr__missed_due(struct hr_engine *e, bool all)
{
	uint32_t left = 0;

	for (uint32_t i = 0; i < e->n_missed; i++) {
		if (all || e->now_ns - e->missed[i].since_ns > MISSED_WAIT_NS)
			hr__loss(e, e->missed[i].proc, HR_LOSS_UNATTACHED, 0, 1);
		else
			e->missed[left++] = e->missed[i];
	}
	e->n_missed = left;
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Roll-ups have the bytes of operations without events: at level `counters`, and of single
 * characters. The heat map spreads them over the 10 s of their window. A window in which the level
 * changed also has the bytes of events. So the roll-ups of a rank share the bytes of its records
 * that no event has.
 */
#include <errno.h>
#include <stdlib.h>

#include "common/array.h"
#include "export/darshan/darshan_internal.h"

/* Bytes that a rank read or wrote, by POSIX or STDIO. */
struct rollup_sum {
	uint64_t records, events, rollups;
	uint64_t seen; /* of `rollups`, in the order of the frames */
};

struct rollup_sums {
	struct hr__darshan *d;
	struct hr_map64 by_key;
	struct rollup_sum *list;
	size_t n, room;
	bool adds; /* to the heat map; else to the sums */
};

/* Finds or makes a sum. NULL: no memory. */
static struct rollup_sum *sum_get(struct rollup_sums *s, int32_t rank, enum hr__darshan_group group,
				  enum hr__darshan_way way)
{
	uint64_t key = (uint64_t)(uint32_t)rank << 2 | (unsigned)group << 1 | (unsigned)way;
	uint32_t i = hr_map64_get(&s->by_key, key);

	if (i != HR_MAP64_NONE)
		return &s->list[i];
	if (!hr_array_reserve(s->list, s->n, s->room) ||
	    hr_map64_set(&s->by_key, key, (uint32_t)s->n) < 0)
		return NULL;
	s->list[s->n] = (struct rollup_sum){0};
	return &s->list[s->n++];
}

static int record_sum(struct rollup_sums *s, int32_t rank, enum hr__darshan_group group,
		      int64_t read, int64_t written)
{
	struct rollup_sum *sum = sum_get(s, rank, group, HR__DARSHAN_READS);

	if (sum == NULL)
		return -ENOMEM;
	sum->records += (uint64_t)read;
	sum = sum_get(s, rank, group, HR__DARSHAN_WRITES);
	if (sum == NULL)
		return -ENOMEM;
	sum->records += (uint64_t)written;
	return 0;
}

/* Adds up the bytes in records, and those that events have already added to the heat map. */
static int sums_begin(const struct hr__darshan *d, struct rollup_sums *s)
{
	int r = 0;

	for (size_t i = 0; i < d->n_uses && r == 0; i++) {
		const struct hr__darshan_use *u = &d->uses[i];

		if (u->posix != NULL)
			r = record_sum(s, u->rank, HR__DARSHAN_POSIX,
				       u->posix->log.c[HR_DP_BYTES_READ],
				       u->posix->log.c[HR_DP_BYTES_WRITTEN]);
		if (r == 0 && u->stdio != NULL)
			r = record_sum(s, u->rank, HR__DARSHAN_STDIO,
				       u->stdio->log.c[HR_DS_BYTES_READ],
				       u->stdio->log.c[HR_DS_BYTES_WRITTEN]);
	}
	for (size_t i = 0; i < d->heat.n && r == 0; i++) {
		const struct hr__darshan_heat_row *row = d->heat.rows[i];

		for (unsigned way = 0; way < HR__DARSHAN_WAYS && r == 0; way++) {
			struct rollup_sum *sum = sum_get(s, row->rank, row->group, way);

			r = sum == NULL ? -ENOMEM : 0;
			for (size_t k = 0; sum != NULL && k < HR__DARSHAN_BINS; k++)
				sum->events += (uint64_t)row->bytes[way][k];
		}
	}
	return r;
}

/* Returns what the next `bytes` of the roll-ups get of the bytes that no event has. */
static uint64_t sum_share(struct rollup_sum *s, uint64_t bytes)
{
	uint64_t rest = s->records > s->events ? s->records - s->events : 0;
	double factor = rest < s->rollups ? (double)rest / (double)s->rollups : 1;
	uint64_t before = (uint64_t)((double)s->seen * factor);

	s->seen += bytes;
	if (factor == 1)
		return bytes;
	return (s->seen == s->rollups ? rest : (uint64_t)((double)s->seen * factor)) - before;
}

static int bytes_add(struct hr__darshan *d, struct rollup_sums *s,
		     const Headrace__RollupBatch *batch, const Headrace__Rollup *row,
		     enum hr__darshan_group group, enum hr__darshan_way way)
{
	const struct hr_walk_process *p = hr_walk_process(d->stream, row->proc);
	uint64_t from_ns = batch->window_start_ns, to_ns = from_ns + batch->window_ns;
	struct hr__darshan_op o = {.process = p};
	struct rollup_sum *sum;

	if (p == NULL || p->number == 0 || !hr_walk_has_scope(d->stream, row->scope))
		return 0;
	sum = sum_get(s, hr__darshan_rank(p), group, way);
	if (sum == NULL)
		return -ENOMEM;
	if (!s->adds) {
		sum->rollups += row->bytes;
		return 0;
	}
	if (from_ns < p->p->msg->start_ns)
		from_ns = p->p->msg->start_ns;
	if (p->p->msg->end_ns != 0 && to_ns > p->p->msg->end_ns)
		to_ns = p->p->msg->end_ns;
	o.bytes = sum_share(sum, row->bytes);
	o.start_ns = hr__darshan_ns(d, from_ns);
	o.end_ns = hr__darshan_ns(d, to_ns);
	if (o.end_ns > d->end_ns)
		o.end_ns = d->end_ns;
	if (o.start_ns > o.end_ns)
		o.start_ns = o.end_ns;
	return o.bytes <= INT64_MAX ? hr__darshan_heat_add(d, &o, group, way) : 0;
}

/* Adds a roll-up of an operation. Copies have rows among the sides. */
static int row_add(struct hr__darshan *d, struct rollup_sums *s, const Headrace__RollupBatch *batch,
		   const Headrace__Rollup *row)
{
	const struct hr_op_info *info = hr_op_info((uint16_t)row->op);
	bool reads = info->class == HR_CLASS_READ;

	if ((!reads && info->class != HR_CLASS_WRITE) || hr_op_copies((uint16_t)row->op))
		return 0;
	return bytes_add(d, s, batch, row,
			 info->api == HR_API_STDIO ? HR__DARSHAN_STDIO : HR__DARSHAN_POSIX,
			 reads ? HR__DARSHAN_READS : HR__DARSHAN_WRITES);
}

static int side_add(struct hr__darshan *d, struct rollup_sums *s,
		    const Headrace__RollupBatch *batch, const Headrace__Rollup *row)
{
	bool single = hr_side_single(row->op);

	if (!single && !batch->alone)
		return 0;
	return bytes_add(d, s, batch, row, single ? HR__DARSHAN_STDIO : HR__DARSHAN_POSIX,
			 hr_side_reads(row->op) ? HR__DARSHAN_READS : HR__DARSHAN_WRITES);
}

static int batch_visit(void *context, Headrace__Frame *frame)
{
	const Headrace__RollupBatch *batch = frame->rollups;
	struct rollup_sums *s = context;
	struct hr__darshan *d = s->d;
	int r = 0;

	for (size_t i = 0; batch->alone && i < batch->n_rows && r == 0; i++)
		r = row_add(d, s, batch, batch->rows[i]);
	for (size_t i = 0; i < batch->n_sides && r == 0; i++)
		r = side_add(d, s, batch, batch->sides[i]);
	return r;
}

int hr__darshan_rollups(struct hr__darshan *d)
{
	struct rollup_sums s = {.d = d};
	uint64_t damaged[2] = {0};
	int r = sums_begin(d, &s);

	for (int pass = 0; pass < 2 && r == 0; pass++) {
		s.adds = pass == 1;
		for (uint32_t i = 0; i < d->x->walk->n_streams && r == 0; i++) {
			d->stream = &d->x->walk->streams[i];
			r = hr_stream_each_frame(d->stream->s, HR_FRAME_BIT(ROLLUPS), batch_visit,
						 &s, &damaged[pass]);
		}
	}
	d->x->damaged += damaged[0];
	if (damaged[0] + damaged[1] > 0)
		d->partial |= UINT64_C(1) << HR_DARSHAN_HEATMAP;
	hr_map64_done(&s.by_key);
	free(s.list);
	return r;
}

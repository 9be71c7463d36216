/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Roll-ups have the bytes of operations without events: at level `counters`, and of single
 * characters. The heat map spreads them over the 10 s of their window.
 */
#include <errno.h>

#include "export/darshan_internal.h"

static int bytes_add(struct hr__darshan *d, const Headrace__RollupBatch *batch,
		     const Headrace__Rollup *row, enum hr__darshan_group group,
		     enum hr__darshan_way way)
{
	const struct hr_walk_process *p = hr_walk_process(d->stream, row->proc);
	uint64_t from_ns = batch->window_start_ns, to_ns = from_ns + batch->window_ns;
	struct hr__darshan_op o = {.process = p, .bytes = row->bytes};

	if (p == NULL || p->number == 0 || row->bytes > INT64_MAX)
		return 0;
	if (from_ns < p->p->msg->start_ns)
		from_ns = p->p->msg->start_ns;
	if (p->p->msg->end_ns != 0 && to_ns > p->p->msg->end_ns)
		to_ns = p->p->msg->end_ns;
	o.start_ns = hr__darshan_ns(d, from_ns);
	o.end_ns = hr__darshan_ns(d, to_ns);
	if (o.end_ns > d->end_ns)
		o.end_ns = d->end_ns;
	if (o.start_ns > o.end_ns)
		o.start_ns = o.end_ns;
	return hr__darshan_heat_add(d, &o, group, way);
}

/* Adds a roll-up of an operation. Copies have rows among the sides. */
static int row_add(struct hr__darshan *d, const Headrace__RollupBatch *batch,
		   const Headrace__Rollup *row)
{
	const struct hr_op_info *info = hr_op_info((uint16_t)row->op);
	bool reads = info->class == HR_CLASS_READ;

	if ((!reads && info->class != HR_CLASS_WRITE) || hr_op_copies((uint16_t)row->op))
		return 0;
	return bytes_add(d, batch, row,
			 info->api == HR_API_STDIO ? HR__DARSHAN_STDIO : HR__DARSHAN_POSIX,
			 reads ? HR__DARSHAN_READS : HR__DARSHAN_WRITES);
}

static int side_add(struct hr__darshan *d, const Headrace__RollupBatch *batch,
		    const Headrace__Rollup *row)
{
	bool single = hr_side_single(row->op);

	if (!single && !batch->alone)
		return 0;
	return bytes_add(d, batch, row, single ? HR__DARSHAN_STDIO : HR__DARSHAN_POSIX,
			 hr_side_reads(row->op) ? HR__DARSHAN_READS : HR__DARSHAN_WRITES);
}

static int batch_add(struct hr__darshan *d, const Headrace__RollupBatch *batch)
{
	int r = 0;

	for (size_t i = 0; batch->alone && i < batch->n_rows && r == 0; i++)
		r = row_add(d, batch, batch->rows[i]);
	for (size_t i = 0; i < batch->n_sides && r == 0; i++)
		r = side_add(d, batch, batch->sides[i]);
	return r;
}

int hr__darshan_rollups(struct hr__darshan *d)
{
	int r = 0;

	for (uint32_t i = 0; i < d->x->walk->n_streams && r == 0; i++) {
		const struct hr_stream *s = d->x->walk->streams[i].s;

		d->stream = &d->x->walk->streams[i];
		for (uint32_t k = 0; k < s->n_frames && r == 0; k++) {
			Headrace__Frame *msg;

			if (s->frames[k].kind != HEADRACE__FRAME__BODY_ROLLUPS)
				continue;
			r = hr_stream_read(s, k, &msg);
			if (r == 0) {
				if (msg->body_case == HEADRACE__FRAME__BODY_ROLLUPS)
					r = batch_add(d, msg->rollups);
				headrace__frame__free_unpacked(msg, NULL);
			} else if (r != -ENOMEM) {
				d->x->damaged++;
				r = 0;
			}
		}
	}
	return r;
}

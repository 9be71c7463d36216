/* SPDX-License-Identifier: Apache-2.0 */
#include "query/intervals/during.h"

#include <errno.h>
#include <stdlib.h>

#include "common/array.h"
#include "common/order.h"
#include "query/tables/rows.h"

/*
 * The points that divide a key's time. sums[i] is for the time from points[i - 1] to points[i]; the
 * first sums have no begin, and the last ones no end.
 */
struct place {
	int64_t *points;
	size_t n;
	struct hr_during_sums *sums;
};

struct hr_during {
	struct hr_during_row *rows;
	size_t n_rows, rows_room;
	struct place *places; /* one element for each key */
	size_t n_places;
};

void hr__during_free(struct hr_during *d)
{
	if (d == NULL)
		return;
	for (size_t i = 0; d->places != NULL && i < d->n_places; i++) {
		free(d->places[i].points);
		free(d->places[i].sums);
	}
	free(d->places);
	free(d->rows);
	free(d);
}

/* ---- regions ---- */

static int add_region(struct hr_during *d, const struct hr_qstream *st, uint32_t stream,
		      const struct hr_region *region)
{
	int64_t start = hr_wall_ns(st, region->start_ns);

	if (!hr_array_reserve(d->rows, d->n_rows, d->rows_room))
		return -ENOMEM;
	d->rows[d->n_rows++] = (struct hr_during_row){
	    stream, 0, *region, start, hr_end_ns(start, region->dur_ns), 0, 0};
	return 0;
}

static int read_stream(struct hr_during *d, struct hr_query *q, uint32_t stream, uint32_t kinds,
		       int32_t rank)
{
	struct hr_qstream *st = &q->streams[stream];
	struct hr_frames frames;
	int r;

	if (!hr__busy_stream_has(st->s, rank))
		return 0;
	r = hr_regions_read(q, st, &frames);
	if (r < 0)
		return r;
	for (size_t i = 0; r == 0 && i < frames.n; i++) {
		const Headrace__Regions *m = frames.list[i]->regions;

		for (size_t k = 0; r == 0 && k < m->n_key; k++) {
			const struct hr_process *p;
			struct hr_region region;

			hr_regions_get(m, k, &region);
			if (region.kind >= 32 || !(kinds >> region.kind & 1))
				continue;
			p = hr_stream_process(st->s, region.proc);
			if (rank == HR_BUSY_ANY_RANK || (p != NULL && p->rank == rank))
				r = add_region(d, st, stream, &region);
		}
	}
	hr_frames_free(&frames);
	return r;
}

int hr__during_new(struct hr_query *q, uint32_t kinds, int32_t rank, struct hr_during **ret)
{
	struct hr_during *d = calloc(1, sizeof(*d));
	int r = d != NULL ? 0 : -ENOMEM;

	for (uint32_t i = 0; r == 0 && i < q->n_streams; i++)
		r = read_stream(d, q, i, kinds, rank);
	if (r < 0) {
		hr__during_free(d);
		return r;
	}
	*ret = d;
	return 0;
}

/* ---- points ---- */

/* Returns the number of points at or before `time`: the index of the sums for `time`. */
static size_t sums_at(const struct place *p, int64_t time)
{
	return hr_array_search(i, p->n, p->points[i] <= time);
}

/* Whether a region has a position in time. Short regions that were added up have none. */
static bool has_place(const struct hr_during_row *row)
{
	return row->region.count <= 1;
}

static int make_points(struct hr_during *d)
{
	for (size_t i = 0; i < d->n_places; i++) {
		struct place *p = &d->places[i];

		p->points = malloc((p->n + 1) * sizeof(*p->points));
		if (p->points == NULL)
			return -ENOMEM;
		p->n = 0;
	}
	for (size_t i = 0; i < d->n_rows; i++) {
		struct place *p = &d->places[d->rows[i].key];

		if (!has_place(&d->rows[i]))
			continue;
		p->points[p->n++] = d->rows[i].start_ns;
		p->points[p->n++] = d->rows[i].end_ns;
	}
	for (size_t i = 0; i < d->n_places; i++) {
		struct place *p = &d->places[i];
		size_t n = 0;

		hr_int64s_sort(p->points, p->n);
		for (size_t k = 0; k < p->n; k++)
			if (n == 0 || p->points[n - 1] != p->points[k])
				p->points[n++] = p->points[k];
		p->n = n;
		p->sums = calloc(n + 1, sizeof(*p->sums));
		if (p->sums == NULL)
			return -ENOMEM;
	}
	return 0;
}

int hr__during_place(struct hr_during *d, const struct hr_query *q, const struct hr_busy_keys *keys)
{
	int r;

	d->places = calloc(keys->n + 1, sizeof(*d->places));
	if (d->places == NULL)
		return -ENOMEM;
	d->n_places = keys->n;
	for (size_t i = 0; i < d->n_rows; i++) {
		struct hr_during_row *row = &d->rows[i];

		row->key = hr__busy_key(keys, q, row->stream, row->region.proc);
		d->places[row->key].n += has_place(row) ? 2 : 0;
	}
	r = make_points(d);
	for (size_t i = 0; r == 0 && i < d->n_rows; i++) {
		struct hr_during_row *row = &d->rows[i];
		const struct place *p = &d->places[row->key];

		row->from = has_place(row) ? sums_at(p, row->start_ns) - 1 : 0;
		row->to = has_place(row) ? sums_at(p, row->end_ns) - 1 : 0;
	}
	return r;
}

/* ---- sums ---- */

struct moved {
	uint64_t ops, read, written, io_ns;
};

static void during_flush(struct hr_during_sums *to, struct moved *from)
{
	if (from->ops == 0)
		return;
	atomic_fetch_add_explicit(&to->ops, from->ops, memory_order_relaxed);
	atomic_fetch_add_explicit(&to->bytes_read, from->read, memory_order_relaxed);
	atomic_fetch_add_explicit(&to->bytes_written, from->written, memory_order_relaxed);
	atomic_fetch_add_explicit(&to->io_ns, from->io_ns, memory_order_relaxed);
	*from = (struct moved){0};
}

static uint64_t bytes_of(const struct hr_columns *c, uint32_t i, const struct hr_op_info *op)
{
	if (op->bytes_rule == HR_BYTES_NONE || c->ret[i] == HR_RET_NONE)
		return 0;
	return hr_bytes_moved(op->bytes_rule, c->ret[i], c->asked[i],
			      c->flags != NULL ? c->flags[i] : 0);
}

void hr__during_ops(struct hr_during *d, uint32_t key, const struct hr_columns *c,
		    uint64_t offset_ns, uint32_t first, uint32_t end, const uint8_t *classes)
{
	const struct place *p = &d->places[key];
	int64_t low = INT64_MAX, high = INT64_MIN; /* points around the sums `at` */
	struct moved moved = {0};
	size_t at = 0;

	if (p->n == 0)
		return;
	for (uint32_t i = first; i < end; i++) {
		int64_t start = (int64_t)(c->start_ns[i] + offset_ns);
		const struct hr_op_info *op = hr_op_info(c->op[i]);

		if (classes != NULL && classes[i] == HR_BUSY_NO_LANE)
			continue;
		if (start < low || start >= high) {
			during_flush(&p->sums[at], &moved);
			at = sums_at(p, start);
			low = at > 0 ? p->points[at - 1] : INT64_MIN;
			high = at < p->n ? p->points[at] : INT64_MAX;
		}
		moved.ops++;
		moved.io_ns += c->dur_ns[i];
		if (op->class == HR_CLASS_READ)
			moved.read += bytes_of(c, i, op);
		else if (op->class == HR_CLASS_WRITE)
			moved.written += bytes_of(c, i, op);
	}
	during_flush(&p->sums[at], &moved);
}

void hr__during_busy(struct hr_during *d, uint32_t key, const struct hr_span *spans, size_t n,
		     int64_t cut)
{
	const struct place *p = &d->places[key];
	size_t first = hr_spans_before(spans, n, cut), at;

	if (p->n == 0 || first == n)
		return;
	at = sums_at(p, spans[first].start > cut ? spans[first].start : cut);
	for (size_t i = first; i < n; i++) {
		int64_t from = spans[i].start > cut ? spans[i].start : cut;

		while (from < spans[i].end) {
			int64_t to = spans[i].end;

			while (at < p->n && p->points[at] <= from)
				at++;
			if (at < p->n && p->points[at] < to)
				to = p->points[at];
			p->sums[at].busy_ns += (uint64_t)to - (uint64_t)from;
			from = to;
		}
	}
}

void hr__during_sum(struct hr_during *d)
{
	for (size_t i = 0; i < d->n_places; i++) {
		struct hr_during_sums *s = d->places[i].sums;

		for (size_t k = 1; k <= d->places[i].n; k++) {
			s[k].ops += s[k - 1].ops;
			s[k].bytes_read += s[k - 1].bytes_read;
			s[k].bytes_written += s[k - 1].bytes_written;
			s[k].io_ns += s[k - 1].io_ns;
			s[k].busy_ns += s[k - 1].busy_ns;
		}
	}
}

size_t hr__during_rows(const struct hr_during *d, const struct hr_during_row **ret)
{
	*ret = d->rows;
	return d->n_rows;
}

const struct hr_during_sums *hr__during_sums(const struct hr_during *d, uint32_t key)
{
	return d->places[key].sums;
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * File records have the totals of all operations, also of those without events: at level
 * `counters`, in damaged frames, and single characters of stdio. If a file has more operations than
 * events, its counters come from its file records. Counters that these do not have become -1.
 */
#include <errno.h>
#include <string.h>

#include "common/level.h"
#include "common/loss.h"
#include "export/darshan/darshan_internal.h"

/* ---- reading ---- */

typedef int row_visit(struct hr__darshan *d, const Headrace__FileRecord *row,
		      const struct hr_walk_process *p);

struct record_reader {
	struct hr__darshan *d;
	row_visit *visit;
};

static int records_visit(void *context, Headrace__Frame *frame)
{
	const Headrace__FileRecords *records = frame->file_records;
	const struct record_reader *reader = context;
	struct hr__darshan *d = reader->d;
	int r = 0;

	for (size_t i = 0; i < records->n_rows && r == 0; i++) {
		const Headrace__FileRecord *row = records->rows[i];
		const struct hr_walk_process *p = hr_walk_process(d->stream, row->proc);
		struct hr_file_info info;

		if (p == NULL || p->number == 0 || row->file == 0)
			continue;
		if (hr_stream_file(d->stream->s, row->file, false, &info) < 0 ||
		    hr_walk_has_scope(d->stream, info.scope))
			r = reader->visit(d, row, p);
	}
	return r;
}

static int each_record(struct hr__darshan *d, row_visit *visit)
{
	struct record_reader reader = {d, visit};
	int r = 0;

	for (uint32_t i = 0; i < d->x->walk->n_streams && r == 0; i++) {
		r = hr__darshan_stream_begin(d, i);
		if (r == 0)
			r = hr_stream_each_frame(d->stream->s, HR_FRAME_BIT(FILE_RECORDS),
						 records_visit, &reader, &d->x->damaged);
		hr__darshan_stream_end(d);
	}
	return r;
}

/* ---- sums ---- */

static enum hr__darshan_group row_group(const Headrace__FileRecord *row)
{
	return row->api == HR_API_STDIO ? HR__DARSHAN_STDIO : HR__DARSHAN_POSIX;
}

static int row_count(struct hr__darshan *d, const Headrace__FileRecord *row,
		     const struct hr_walk_process *p)
{
	struct hr__darshan_use *u = hr__darshan_use(d, row->file, hr__darshan_rank(p));

	if (u == NULL)
		return -ENOMEM;
	u->recorded[row_group(row)] += row->opens + row->reads + row->writes + row->seeks +
				       row->stats + row->syncs + row->meta_ops;
	return 0;
}

/*
 * Adds a histogram, whose bins are powers of two. The sizes of a bin count as its middle, or as
 * their mean, if all are in one bin.
 */
static void add_sizes(uint64_t *sizes, const uint64_t *pairs, size_t n, uint64_t bytes)
{
	for (size_t i = 0; i + 1 < n; i += 2) {
		uint64_t size = pairs[i] < 62 ? UINT64_C(3) << pairs[i] >> 1 : INT64_MAX;

		if (n == 2 && pairs[1] > 0)
			size = bytes / pairs[1];
		sizes[hr__darshan_bucket(size)] += pairs[i + 1];
	}
}

static void add_max(uint64_t *max, uint64_t value)
{
	if (value > *max)
		*max = value;
}

static int row_add(struct hr__darshan *d, const Headrace__FileRecord *row,
		   const struct hr_walk_process *p)
{
	struct hr__darshan_use *u = hr__darshan_use(d, row->file, hr__darshan_rank(p));
	int64_t first_ns = hr__darshan_ns(d, row->first_ns);
	int64_t last_ns = hr__darshan_ns(d, row->last_ns);
	enum hr__darshan_group g = row_group(row);
	struct hr__darshan_totals *t;

	if (u == NULL)
		return -ENOMEM;
	if (u->recorded[g] <= u->ops[g])
		return 0;
	if (u->totals[g] == NULL) {
		u->totals[g] = hr_arena_alloc(&d->memory, sizeof(*t));
		if (u->totals[g] == NULL)
			return -ENOMEM;
		u->totals[g]->first_ns = first_ns;
	}
	t = u->totals[g];
#define ADD(name) t->sums.name += row->name;
	HR__DARSHAN_SUMS(ADD)
#undef ADD
	add_max(&t->max_read_ns, row->max_read_ns);
	add_max(&t->max_write_ns, row->max_write_ns);
	add_sizes(t->sizes[HR__DARSHAN_READS], row->read_size_hist, row->n_read_size_hist,
		  row->bytes_read);
	add_sizes(t->sizes[HR__DARSHAN_WRITES], row->write_size_hist, row->n_write_size_hist,
		  row->bytes_written);
	t->first_ns = first_ns < t->first_ns ? first_ns : t->first_ns;
	t->last_ns = last_ns > t->last_ns ? last_ns : t->last_ns;
	d->end_ns = last_ns > d->end_ns ? last_ns : d->end_ns;
	return 0;
}

/* ---- counters ---- */

static void set_span(double *first, double *last, const struct hr__darshan_totals *t, bool any)
{
	*first = any ? (double)t->first_ns / 1e9 : 0;
	*last = any ? (double)t->last_ns / 1e9 : 0;
}

static void set_posix_times(double *f, const struct hr__darshan_totals *t)
{
	const struct hr__darshan_sums *s = &t->sums;

	f[HR_DP_READ_TIME] = (double)s->read_ns / 1e9;
	f[HR_DP_WRITE_TIME] = (double)s->write_ns / 1e9;
	f[HR_DP_META_TIME] = (double)s->meta_ns / 1e9;
	f[HR_DP_MAX_READ_TIME] = (double)t->max_read_ns / 1e9;
	f[HR_DP_MAX_WRITE_TIME] = (double)t->max_write_ns / 1e9;
	set_span(&f[HR_DP_OPEN_START], &f[HR_DP_OPEN_END], t, s->opens > 0);
	set_span(&f[HR_DP_CLOSE_START], &f[HR_DP_CLOSE_END], t, s->opens > 0);
	set_span(&f[HR_DP_READ_START], &f[HR_DP_READ_END], t, s->reads > 0);
	set_span(&f[HR_DP_WRITE_START], &f[HR_DP_WRITE_END], t, s->writes > 0);
}

/* Replaces the counters of a POSIX record by totals. */
static void set_posix(struct hr_darshan_posix *log, const struct hr__darshan_totals *t)
{
	/* clang-format off */
	static const uint8_t unknown[] = {
	    HR_DP_FILENOS, HR_DP_DUPS, HR_DP_MMAPS, HR_DP_RENAME_SOURCES, HR_DP_RENAME_TARGETS,
	    HR_DP_MODE, HR_DP_MAX_BYTE_READ, HR_DP_MAX_BYTE_WRITTEN, HR_DP_MEM_NOT_ALIGNED,
	    HR_DP_MEM_ALIGNMENT, HR_DP_MAX_READ_TIME_SIZE, HR_DP_MAX_WRITE_TIME_SIZE,
	};
	/* clang-format on */
	const struct hr__darshan_sums *s = &t->sums;
	int64_t *c = log->c;

	memset(c, 0, sizeof(log->c));
	for (size_t i = 0; i < sizeof(unknown); i++)
		c[unknown[i]] = HR_DARSHAN_UNKNOWN;
	/* Which of them were fdatasync is unknown. */
	c[HR_DP_FSYNCS] = c[HR_DP_FDSYNCS] = s->syncs > 0 ? HR_DARSHAN_UNKNOWN : 0;
	c[HR_DP_OPENS] = (int64_t)s->opens;
	c[HR_DP_READS] = (int64_t)s->reads;
	c[HR_DP_WRITES] = (int64_t)s->writes;
	c[HR_DP_SEEKS] = (int64_t)s->seeks;
	c[HR_DP_STATS] = (int64_t)s->stats;
	c[HR_DP_BYTES_READ] = (int64_t)s->bytes_read;
	c[HR_DP_BYTES_WRITTEN] = (int64_t)s->bytes_written;
	c[HR_DP_CONSEC_READS] = (int64_t)s->consec_reads;
	c[HR_DP_CONSEC_WRITES] = (int64_t)s->consec_writes;
	c[HR_DP_SEQ_READS] = (int64_t)s->seq_reads;
	c[HR_DP_SEQ_WRITES] = (int64_t)s->seq_writes;
	c[HR_DP_RW_SWITCHES] = (int64_t)s->rw_switches;
	c[HR_DP_FILE_NOT_ALIGNED] = (int64_t)s->unaligned;
	c[HR_DP_FILE_ALIGNMENT] = HR_DARSHAN_ALIGN_BYTES;
	for (unsigned i = 0; i < HR_DARSHAN_SIZES; i++) {
		c[HR_DP_SIZE_READ + i] = (int64_t)t->sizes[HR__DARSHAN_READS][i];
		c[HR_DP_SIZE_WRITE + i] = (int64_t)t->sizes[HR__DARSHAN_WRITES][i];
	}
	set_posix_times(log->f, t);
}

static uint64_t rest_of(uint64_t all, uint64_t seen)
{
	return all > seen ? all - seen : 0;
}

static void widen(double *first, double *last, const struct hr__darshan_totals *t)
{
	double start = (double)t->first_ns / 1e9, end = (double)t->last_ns / 1e9;

	if (*first == 0)
		*first = start;
	if (*last == 0)
		*last = end;
}

/* Adds operations without events to a STDIO record. `seen`: the operations with events. */
static void add_stdio(struct hr__darshan_stdio *rec, const struct hr__darshan_totals *t,
		      const struct hr__darshan_sums *seen)
{
	const struct hr__darshan_sums *s = &t->sums;
	uint64_t opens = rest_of(s->opens, seen->opens), reads = rest_of(s->reads, seen->reads);
	uint64_t writes = rest_of(s->writes, seen->writes);
	int64_t *c = rec->log.c;
	double *f = rec->log.f;

	c[HR_DS_OPENS] += (int64_t)opens;
	c[HR_DS_READS] += (int64_t)reads;
	c[HR_DS_WRITES] += (int64_t)writes;
	c[HR_DS_SEEKS] += (int64_t)rest_of(s->seeks, seen->seeks);
	c[HR_DS_FLUSHES] += (int64_t)rest_of(s->syncs, seen->syncs);
	c[HR_DS_BYTES_READ] += (int64_t)rest_of(s->bytes_read, seen->bytes_read);
	c[HR_DS_BYTES_WRITTEN] += (int64_t)rest_of(s->bytes_written, seen->bytes_written);
	if (rest_of(s->meta_ops, seen->meta_ops) > 0)
		c[HR_DS_FDOPENS] = HR_DARSHAN_UNKNOWN;
	f[HR_DS_READ_TIME] += (double)rest_of(s->read_ns, seen->read_ns) / 1e9;
	f[HR_DS_WRITE_TIME] += (double)rest_of(s->write_ns, seen->write_ns) / 1e9;
	f[HR_DS_META_TIME] += (double)rest_of(s->meta_ns, seen->meta_ns) / 1e9;
	if (opens > 0) {
		widen(&f[HR_DS_OPEN_START], &f[HR_DS_OPEN_END], t);
		widen(&f[HR_DS_CLOSE_START], &f[HR_DS_CLOSE_END], t);
	}
	if (reads > 0)
		widen(&f[HR_DS_READ_START], &f[HR_DS_READ_END], t);
	if (writes > 0)
		widen(&f[HR_DS_WRITE_START], &f[HR_DS_WRITE_END], t);
	rec->lost_read |= reads > 0;
	rec->lost_write |= writes > 0;
}

static bool any_counted(const struct hr__darshan_sums *s)
{
	return s->opens + s->reads + s->writes + s->seeks + s->stats + s->syncs > 0;
}

static int use_apply(struct hr__darshan *d, struct hr__darshan_use *u)
{
	static const struct hr__darshan_sums none;
	const struct hr__darshan_totals *posix = u->totals[HR__DARSHAN_POSIX];
	const struct hr__darshan_totals *stdio = u->totals[HR__DARSHAN_STDIO];

	if (posix != NULL && (u->posix != NULL || any_counted(&posix->sums))) {
		if (hr__darshan_posix_record(d, u) == NULL)
			return -ENOMEM;
		u->posix->access.n = u->posix->strides.n = 0;
		set_posix(&u->posix->log, posix);
		d->partial |= UINT64_C(1) << HR_DARSHAN_POSIX;
	}
	if (stdio != NULL && (u->stdio != NULL || any_counted(&stdio->sums))) {
		if (hr__darshan_stdio_record(d, u) == NULL)
			return -ENOMEM;
		add_stdio(u->stdio, stdio, u->seen != NULL ? u->seen : &none);
	}
	return 0;
}

/* ---- gaps ---- */

#define MODULE_BIT(module) (UINT64_C(1) << HR_DARSHAN_##module)
#define EVENT_MODULES	   (MODULE_BIT(DXT_POSIX) | MODULE_BIT(HEATMAP))
#define ALL_MODULES	   (EVENT_MODULES | MODULE_BIT(POSIX) | MODULE_BIT(STDIO))

/* Whether operations that the reason counts are missing in the counters of files. */
static bool loss_matters(const char *reason)
{
	switch (hr_loss_by_name(reason)) {
	case HR_LOSS_REGIONS:
	case HR_LOSS_COLLISION:
	case HR_LOSS_JOURNAL_MEMORY:
	case HR_LOSS_ROLLUPS_FULL:
		return false;
	default:
		return true;
	}
}

/* Sets the bits of the modules that lack data, because of one frame. */
static int gaps_visit(void *context, Headrace__Frame *msg)
{
	struct hr__darshan *d = context;

	if (msg->body_case == HEADRACE__FRAME__BODY_LEVELS &&
	    strcmp(msg->levels->level, hr_level_name(HR_LEVEL_TRACE)) != 0)
		d->partial |= ALL_MODULES;
	if (msg->body_case != HEADRACE__FRAME__BODY_LOSS)
		return 0;
	for (size_t i = 0; i < msg->loss->n_rows; i++) {
		const Headrace__LossRow *row = msg->loss->rows[i];
		const struct hr_walk_process *p = hr_walk_process(d->stream, row->proc);

		if ((row->proc == 0 || (p != NULL && p->number != 0)) && loss_matters(row->reason))
			d->partial |= ALL_MODULES;
	}
	return 0;
}

int hr__darshan_totals(struct hr__darshan *d)
{
	int r = 0;

	for (uint32_t i = 0; i < d->x->walk->n_streams && r == 0; i++) {
		d->stream = &d->x->walk->streams[i];
		r = hr_stream_each_frame(d->stream->s, HR_FRAME_BIT(LEVELS) | HR_FRAME_BIT(LOSS),
					 gaps_visit, d, &d->x->damaged);
	}
	if (r == 0 && d->whole)
		r = each_record(d, row_count);
	if (r == 0 && d->whole)
		r = each_record(d, row_add);
	for (size_t i = 0; i < d->n_uses && r == 0; i++)
		r = use_apply(d, &d->uses[i]);
	if (d->x->damaged > 0)
		d->partial |= ALL_MODULES;
	return r;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* The module DXT_POSIX: each segment is a read or write. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/array.h"
#include "common/pathid.h"
#include "import/darshan/darshan_state.h"

#define DXT_VERSION  2u
#define BYTES_MOST   (INT64_C(1) << 50)
#define CHUNK	     4096u /* segments that are read at a time */
#define V1_BYTES     sizeof(struct hr_darshan_segment)
#define V2_BYTES     (V1_BYTES + sizeof(uint64_t)) /* version 2 adds a pthread_t */
#define THREADS_MOST 65536u

enum dxt_way { WAY_WRITES, WAY_READS };

struct dxt_op {
	uint64_t start_ns, end_ns, thread; /* `thread`: a pthread_t, or 0 */
	int64_t offset, bytes;
	enum dxt_way way;
};

/* The operations of one record, kept for the next one to save allocations. */
struct dxt_ops {
	struct dxt_op *v;
	size_t n, room;
	uint8_t *chunk;
};

static int op_read(struct darshan *d, struct dxt_ops *ops, const uint8_t *from, enum dxt_way way)
{
	struct hr_darshan_segment seg;
	struct dxt_op op = {.way = way};

	memcpy(&seg, from, sizeof(seg));
	hr__dlog_swap(d, &seg, sizeof(seg) / 8);
	if (d->header.versions[HR_DARSHAN_DXT_POSIX] >= 2) {
		memcpy(&op.thread, from + V1_BYTES, sizeof(op.thread));
		hr__dlog_swap(d, &op.thread, 1);
	}
	if (seg.bytes < 0 || seg.bytes > BYTES_MOST ||
	    !hr__dlog_time(d, seg.start_s, &op.start_ns) ||
	    !hr__dlog_time(d, seg.end_s, &op.end_ns)) {
		d->n_bad++;
		return 0;
	}
	if (op.end_ns < op.start_ns)
		op.end_ns = op.start_ns;
	op.offset = seg.offset < 0 ? HR_OFFSET_NONE : seg.offset;
	op.bytes = seg.bytes;
	if (!hr_array_reserve(ops->v, ops->n, ops->room))
		return -ENOMEM;
	ops->v[ops->n++] = op;
	return 0;
}

/* Reads `count` segments, or fewer if the region ends. Returns 0, -ENODATA: it ended; -errno. */
static int ops_read(struct darshan *d, struct dxt_ops *ops, int64_t count, enum dxt_way way)
{
	size_t bytes = d->header.versions[HR_DARSHAN_DXT_POSIX] >= 2 ? V2_BYTES : V1_BYTES;

	while (count > 0) {
		size_t n = count < CHUNK ? (size_t)count : CHUNK;
		long got = hr_input_fill(d->source, ops->chunk, n * bytes);

		if (got < 0)
			return (int)got;
		for (size_t i = 0; i < (size_t)got / bytes; i++) {
			int r = op_read(d, ops, ops->chunk + i * bytes, way);

			if (r)
				return r;
		}
		if ((size_t)got < n * bytes) {
			d->cut = true;
			return -ENODATA;
		}
		if (hr_import_stopped(d->f))
			return -ECANCELED;
		count -= (int64_t)n;
	}
	return 0;
}

static int op_compare(const void *a, const void *b)
{
	const struct dxt_op *x = a, *y = b;

	if (x->end_ns != y->end_ns)
		return x->end_ns < y->end_ns ? -1 : 1;
	return (x->start_ns > y->start_ns) - (x->start_ns < y->start_ns);
}

/* Darshan stores pthread_t, not thread ids: the threads of a rank get the numbers 1, 2... */
static uint32_t thread_find(struct darshan *d, const struct darshan_rank *of, uint64_t pthread)
{
	struct {
		const struct hr_import_stream *s;
		uint64_t proc, pthread;
	} k = {of->s, of->proc, pthread};
	uint64_t key = hr_path_id(&k, sizeof(k));
	uint32_t thread = hr_map64_get(&d->thread_of, key);

	if (pthread == 0)
		return of->thread;
	if (thread != HR_MAP64_NONE)
		return thread;
	if (d->thread_of.used >= THREADS_MOST)
		return of->thread;
	thread = hr_import_thread(of->s, of->proc, d->thread_of.used + 1);
	return thread && hr_map64_set(&d->thread_of, key, thread) == 0 ? thread : 0;
}

static int ops_add(struct darshan *d, const struct darshan_rank *of, uint32_t file, uint64_t id,
		   int64_t rank, struct dxt_ops *ops)
{
	int r = 0;

	if (ops->n)
		qsort(ops->v, ops->n, sizeof(*ops->v), op_compare);
	for (size_t i = 0; i < ops->n && !r; i++) {
		const struct dxt_op *op = &ops->v[i];
		uint32_t thread = thread_find(d, of, op->thread);
		struct hr_event e = hr_event_none();

		e.start_ns = op->start_ns;
		e.dur_ns = op->end_ns - op->start_ns;
		e.offset = op->offset;
		e.ret = op->bytes;
		e.file = file;
		e.op = op->way == WAY_READS ? HR_OP_pread64 : HR_OP_pwrite64;
		r = hr_import_operation(of->s, thread, &e);
		/* The counters of a file that ranks share are those of all ranks. */
		for (int shared = 0; shared < 2 && !r; shared++) {
			struct darshan_traced *t =
			    hr__dlog_traced(d, id, shared ? HR_DARSHAN_SHARED : rank);

			if (!t)
				return -ENOMEM;
			t->way[op->way].n++;
			t->way[op->way].bytes += (uint64_t)op->bytes;
			t->way[op->way].dur_ns += e.dur_ns;
		}
	}
	d->n_segments += ops->n;
	return r;
}

static bool record_possible(const struct darshan *d, const struct hr_darshan_dxt *rec)
{
	return hr__dlog_rank_possible(d, rec->rank) && rec->writes >= 0 && rec->reads >= 0;
}

/* Reads a record. 0; -ENODATA: there are no more; -errno. */
static int record_read(struct darshan *d, struct dxt_ops *ops)
{
	char host[HR_DARSHAN_HOST_BYTES + 1] = "";
	struct hr_darshan_dxt rec;
	const struct darshan_rank *of;
	long got = hr_input_fill(d->source, &rec, sizeof(rec));
	uint32_t file;
	int r, end;

	if (got < (long)sizeof(rec)) {
		d->cut |= got > 0;
		return got < 0 ? (int)got : -ENODATA;
	}
	memcpy(host, rec.host, sizeof(rec.host));
	hr__dlog_swap(d, &rec, offsetof(struct hr_darshan_dxt, host) / 8);
	hr__dlog_swap(d, &rec.writes, 2);
	if (!record_possible(d, &rec)) { /* what follows has an unknown length */
		d->cut = true;
		return -ENODATA;
	}
	ops->n = 0;
	end = ops_read(d, ops, rec.writes, WAY_WRITES);
	if (!end)
		end = ops_read(d, ops, rec.reads, WAY_READS);
	if (end && end != -ENODATA)
		return end;
	of = hr__dlog_rank(d, rec.rank, host[0] ? host : NULL);
	file = of && ops->n ? hr__dlog_file(d, of->s, rec.id) : 0;
	if (!of || (ops->n && !file))
		return -ENOMEM;
	r = ops_add(d, of, file, rec.id, rec.rank, ops);
	return r ? r : end;
}

int hr__dlog_dxt(struct darshan *d)
{
	struct dxt_ops ops = {0};
	int r;

	if (!hr__dlog_module(d, HR_DARSHAN_DXT_POSIX, DXT_VERSION))
		return 0;
	ops.chunk = malloc(CHUNK * V2_BYTES);
	r = ops.chunk ? 0 : -ENOMEM;
	while (!r)
		r = record_read(d, &ops);
	free(ops.chunk);
	free(ops.v);
	return r == -ENODATA ? 0 : r;
}

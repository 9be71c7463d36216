/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The modules POSIX and STDIO: a record of counters for each file and rank.
 *
 * What DXT has as operations is already in the sums, so only the rest of the counters is added: as a
 * file record, and as sums of operations (roll-ups).
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/hist.h"
#include "import/darshan/darshan_state.h"

#define POSIX_VERSION 4u
#define STDIO_VERSION 2u
#define COUNT_MOST    UINT32_MAX
#define BYTES_MOST    (INT64_C(1) << 50)
#define POSIX_WORDS   (sizeof(struct hr_darshan_posix) / 8)
#define STDIO_WORDS   (sizeof(struct hr_darshan_stdio) / 8)
#define RECORD_WORDS  96u

enum counter_way { WAY_WRITES, WAY_READS, WAYS };

/* Operations of a record, as sums. */
struct counter_op {
	uint16_t op;
	int64_t count;
	double start_s, end_s; /* 0: unknown */
};

/* What the modules have in common. */
struct counter_record {
	uint64_t id;
	int64_t rank;
	enum hr_api api;
	struct {
		uint16_t op;
		int64_t n, bytes;
		double start_s, end_s, dur_s, max_s;
		int64_t seq, consec;
		const int64_t *sizes; /* NULL: unknown */
	} way[WAYS];
	struct counter_op other[8];
	unsigned n_other;
	double meta_s;
	int64_t rw_switches, unaligned;
};

/* ---- old versions ---------------------------------------------------------------------------- */

static void words_insert(uint64_t *words, size_t *n, size_t at, size_t count)
{
	memmove(words + at + count, words + at, (*n - at) * sizeof(*words));
	memset(words + at, 0, count * sizeof(*words));
	*n += count;
}

/* Converts a record to version 4. False: its counters are also those of the other module. */
static bool posix_convert(uint64_t *words, size_t n, uint32_t version)
{
	bool mixed = false;

	if (version == 1) { /* with counters of fopen, fread, fwrite, fseek */
		mixed = (int64_t)words[2 + 6] > 0;
		memmove(words + 2 + 6, words + 2 + 10, (n - 12) * sizeof(*words));
		n -= 4;
	}
	if (version <= 2) /* without CLOSE_START and OPEN_END */
		words_insert(words, &n, 2 + 64 + 3, 2);
	if (version <= 3) { /* without FILENOS, DUPS; RENAME_SOURCES, _TARGETS, RENAMED_FROM */
		words_insert(words, &n, 2 + HR_DP_FILENOS, 2);
		words_insert(words, &n, 2 + HR_DP_RENAME_SOURCES, 3);
	}
	return !mixed;
}

static size_t posix_words(uint32_t version)
{
	static const uint16_t bytes[] = {0, 680, 648, 664, sizeof(struct hr_darshan_posix)};

	return bytes[version] / 8;
}

/* ---- values ---------------------------------------------------------------------------------- */

/* A counter that was not watched is -1. */
static int64_t counter_value(int64_t v)
{
	return v < 0 ? 0 : v;
}

static uint64_t seconds_ns(double s)
{
	return s > 0 && s < 1e9 ? (uint64_t)(s * 1e9 + 0.5) : 0;
}

/* Without a time, the start of the job. */
static uint64_t moment_ns(const struct darshan *d, double s)
{
	uint64_t ns;

	return hr__dlog_time(d, s, &ns) ? ns : d->start_ns;
}

/* Writes pairs (bin, count) of a log2 histogram. Darshan's buckets are powers of ten. */
static size_t sizes_pairs(const int64_t *sizes, int64_t n, int64_t bytes, uint64_t *pairs)
{
	static const uint8_t bin[HR_DARSHAN_SIZES] = {5, 8, 12, 15, 18, 21, 22, 25, 28, 30};
	unsigned last = 0, used = 0;
	size_t k = 0;

	for (unsigned i = 0; sizes && i < HR_DARSHAN_SIZES; i++)
		if (sizes[i] > 0) {
			last = i;
			used++;
		}
	if (used <= 1) { /* the mean is more exact */
		pairs[0] = hr_log2_bin((uint64_t)(bytes / n));
		pairs[1] = (uint64_t)n;
		return 2;
	}
	for (unsigned i = 0; i <= last; i++)
		if (sizes[i] > 0) {
			pairs[k++] = bin[i];
			pairs[k++] = (uint64_t)sizes[i];
		}
	return k;
}

static void span_extend(const struct darshan *d, Headrace__FileRecord *m, double start_s,
			double end_s)
{
	uint64_t start = moment_ns(d, start_s), end = moment_ns(d, end_s);

	if (start_s != 0 && (m->first_ns == 0 || start < m->first_ns))
		m->first_ns = start;
	if (end_s != 0 && end > m->last_ns)
		m->last_ns = end;
}

/* ---- sums ------------------------------------------------------------------------------------ */

static int sum_add(const struct darshan_rank *of, uint16_t op, const Headrace__FileRecord *m,
		   struct hr_import_tally *t)
{
	if (t->start_ns < m->first_ns)
		t->start_ns = m->first_ns;
	if (t->end_ns < t->start_ns)
		t->end_ns = m->last_ns > t->start_ns ? m->last_ns : t->start_ns;
	t->op = op;
	return hr_import_tally(of->s, of->thread, t);
}

static int sums_add(const struct darshan *d, const struct darshan_rank *of,
		    const struct counter_record *c, const Headrace__FileRecord *m)
{
	uint64_t meta_ns = m->meta_ns;
	int r = 0;

	for (int way = 0; way < WAYS && !r; way++) {
		struct hr_import_tally t = {
		    .count = way == WAY_READS ? m->reads : m->writes,
		    .bytes = way == WAY_READS ? m->bytes_read : m->bytes_written,
		    .start_ns = moment_ns(d, c->way[way].start_s),
		    .end_ns = moment_ns(d, c->way[way].end_s),
		    .dur_ns = way == WAY_READS ? m->read_ns : m->write_ns,
		    .max_ns = way == WAY_READS ? m->max_read_ns : m->max_write_ns,
		};

		if (t.count)
			r = sum_add(of, c->way[way].op, m, &t);
	}
	for (unsigned i = 0; i < c->n_other && !r; i++) {
		struct hr_import_tally t = {
		    .count = (uint64_t)c->other[i].count,
		    .start_ns = moment_ns(d, c->other[i].start_s),
		    .end_ns = moment_ns(d, c->other[i].end_s),
		    .dur_ns = meta_ns, /* Darshan has one time for all of them */
		};

		r = sum_add(of, c->other[i].op, m, &t);
		meta_ns = 0;
	}
	return r;
}

/* ---- file records ---------------------------------------------------------------------------- */

static void other_count(const struct counter_op *o, Headrace__FileRecord *m)
{
	switch (hr_op_info(o->op)->class) {
	case HR_CLASS_OPEN:
		m->opens += (uint64_t)o->count;
		break;
	case HR_CLASS_SEEK:
		m->seeks += (uint64_t)o->count;
		break;
	case HR_CLASS_STAT:
		m->stats += (uint64_t)o->count;
		break;
	case HR_CLASS_SYNC:
		m->syncs += (uint64_t)o->count;
		break;
	default:
		m->meta_ops += (uint64_t)o->count;
	}
}

/* The part of a counter that DXT has no operation for. */
static uint64_t counter_rest(int64_t all, uint64_t traced)
{
	return (uint64_t)all > traced ? (uint64_t)all - traced : 0;
}

/* Sets the reads or writes that are not in DXT. */
static void way_fill(const struct counter_record *c, const struct darshan_traced *traced,
		     enum counter_way way, Headrace__FileRecord *m, uint64_t *pairs,
		     size_t *ret_pairs)
{
	uint64_t n = counter_rest(c->way[way].n, traced->way[way].n);
	uint64_t bytes = counter_rest(c->way[way].bytes, traced->way[way].bytes);
	uint64_t dur_ns = seconds_ns(c->way[way].dur_s), max_ns = seconds_ns(c->way[way].max_s);
	bool whole = traced->way[way].n == 0;

	*ret_pairs = 0;
	if (!n)
		return;
	dur_ns = counter_rest((int64_t)dur_ns, traced->way[way].dur_ns);
	*ret_pairs =
	    sizes_pairs(whole ? c->way[way].sizes : NULL, (int64_t)n, (int64_t)bytes, pairs);
	if (way == WAY_READS) {
		m->reads = n;
		m->bytes_read = bytes;
		m->read_ns = dur_ns;
		m->max_read_ns = max_ns;
		m->seq_reads = whole ? (uint64_t)c->way[way].seq : 0;
		m->consec_reads = whole ? (uint64_t)c->way[way].consec : 0;
	} else {
		m->writes = n;
		m->bytes_written = bytes;
		m->write_ns = dur_ns;
		m->max_write_ns = max_ns;
		m->seq_writes = whole ? (uint64_t)c->way[way].seq : 0;
		m->consec_writes = whole ? (uint64_t)c->way[way].consec : 0;
	}
}

/* The operations that are in the record only, and their times. */
static void record_fill(const struct darshan *d, const struct counter_record *c,
			const struct darshan_traced *traced, Headrace__FileRecord *m)
{
	for (int way = 0; way < WAYS; way++)
		if (way == WAY_READS ? m->reads : m->writes)
			span_extend(d, m, c->way[way].start_s, c->way[way].end_s);
	for (unsigned i = 0; i < c->n_other; i++) {
		other_count(&c->other[i], m);
		span_extend(d, m, c->other[i].start_s, c->other[i].end_s);
	}
	m->meta_ns = c->n_other ? seconds_ns(c->meta_s) : 0;
	if (!traced->way[WAY_READS].n && !traced->way[WAY_WRITES].n) {
		m->rw_switches = (uint64_t)counter_value(c->rw_switches);
		m->unaligned = (uint64_t)counter_value(c->unaligned);
	}
	if (m->first_ns == 0)
		m->first_ns = d->start_ns;
	if (m->last_ns < m->first_ns)
		m->last_ns = m->first_ns;
}

static bool record_possible(const struct darshan *d, const struct counter_record *c)
{
	bool ok = hr__dlog_rank_possible(d, c->rank);

	for (int way = 0; way < WAYS; way++)
		ok = ok && c->way[way].n <= COUNT_MOST && c->way[way].bytes <= BYTES_MOST;
	for (unsigned i = 0; i < c->n_other; i++)
		ok = ok && c->other[i].count <= COUNT_MOST;
	return ok;
}

static int record_add(struct darshan *d, struct counter_record *c)
{
	uint64_t pairs[WAYS][2 * HR_DARSHAN_SIZES];
	Headrace__FileRecord m = HEADRACE__FILE_RECORD__INIT;
	const struct darshan_rank *of;
	struct darshan_traced traced = {0};
	const struct darshan_traced *found;
	int r;

	if (!record_possible(d, c)) {
		d->n_bad++;
		return 0;
	}
	of = hr__dlog_rank(d, c->rank, NULL);
	found = c->api == HR_API_POSIX ? hr__dlog_traced(d, c->id, c->rank) : &traced;
	if (!of || !found)
		return -ENOMEM;
	traced = *found;
	m.proc = of->proc;
	m.api = c->api;
	m.read_size_hist = pairs[WAY_READS];
	m.write_size_hist = pairs[WAY_WRITES];
	way_fill(c, &traced, WAY_READS, &m, pairs[WAY_READS], &m.n_read_size_hist);
	way_fill(c, &traced, WAY_WRITES, &m, pairs[WAY_WRITES], &m.n_write_size_hist);
	if (!m.reads && !m.writes && !c->n_other)
		return 0;
	m.file = hr__dlog_file(d, of->s, c->id);
	record_fill(d, c, &traced, &m);
	r = m.file ? hr_import_record(of->s, &m) : -ENOMEM;
	return r ? r : sums_add(d, of, c, &m);
}

/* ---- modules --------------------------------------------------------------------------------- */

static void other_add(struct counter_record *c, uint16_t op, int64_t count, double start_s,
		      double end_s)
{
	if (count > 0)
		c->other[c->n_other++] = (struct counter_op){op, count, start_s, end_s};
}

static int posix_add(struct darshan *d, const struct hr_darshan_posix *p)
{
	struct counter_record c = {
	    .id = p->id,
	    .rank = p->rank,
	    .api = HR_API_POSIX,
	    .way[WAY_READS] = {HR_OP_read, counter_value(p->c[HR_DP_READS]),
			       counter_value(p->c[HR_DP_BYTES_READ]), p->f[HR_DP_READ_START],
			       p->f[HR_DP_READ_END], p->f[HR_DP_READ_TIME],
			       p->f[HR_DP_MAX_READ_TIME], counter_value(p->c[HR_DP_SEQ_READS]),
			       counter_value(p->c[HR_DP_CONSEC_READS]), &p->c[HR_DP_SIZE_READ]},
	    .way[WAY_WRITES] = {HR_OP_write, counter_value(p->c[HR_DP_WRITES]),
				counter_value(p->c[HR_DP_BYTES_WRITTEN]), p->f[HR_DP_WRITE_START],
				p->f[HR_DP_WRITE_END], p->f[HR_DP_WRITE_TIME],
				p->f[HR_DP_MAX_WRITE_TIME], counter_value(p->c[HR_DP_SEQ_WRITES]),
				counter_value(p->c[HR_DP_CONSEC_WRITES]), &p->c[HR_DP_SIZE_WRITE]},
	    .meta_s = p->f[HR_DP_META_TIME],
	    .rw_switches = p->c[HR_DP_RW_SWITCHES],
	    .unaligned = p->c[HR_DP_FILE_NOT_ALIGNED],
	};
	struct counter_record maps = {.id = p->id, .rank = p->rank, .api = HR_API_MMAP};
	int r;

	other_add(&c, HR_OP_open64, p->c[HR_DP_OPENS], p->f[HR_DP_OPEN_START],
		  p->f[HR_DP_OPEN_END]);
	other_add(&c, HR_OP_lseek64, p->c[HR_DP_SEEKS], 0, 0);
	other_add(&c, HR_OP_stat64, p->c[HR_DP_STATS], 0, 0);
	other_add(&c, HR_OP_fsync, p->c[HR_DP_FSYNCS], 0, 0);
	other_add(&c, HR_OP_fdatasync, p->c[HR_DP_FDSYNCS], 0, 0);
	other_add(&c, HR_OP_dup, p->c[HR_DP_DUPS], 0, 0);
	/* RENAME_TARGETS counts the same renames at the other file. */
	other_add(&c, HR_OP_rename, p->c[HR_DP_RENAME_SOURCES], 0, 0);
	other_add(&maps, HR_OP_mmap64, p->c[HR_DP_MMAPS], 0, 0);
	r = record_add(d, &c);
	return r || !maps.n_other ? r : record_add(d, &maps);
}

static int stdio_add(struct darshan *d, const struct hr_darshan_stdio *p)
{
	struct counter_record c = {
	    .id = p->id,
	    .rank = p->rank,
	    .api = HR_API_STDIO,
	    .way[WAY_READS] = {HR_OP_fread, counter_value(p->c[HR_DS_READS]),
			       counter_value(p->c[HR_DS_BYTES_READ]), p->f[HR_DS_READ_START],
			       p->f[HR_DS_READ_END], p->f[HR_DS_READ_TIME], 0, 0, 0, NULL},
	    .way[WAY_WRITES] = {HR_OP_fwrite, counter_value(p->c[HR_DS_WRITES]),
				counter_value(p->c[HR_DS_BYTES_WRITTEN]), p->f[HR_DS_WRITE_START],
				p->f[HR_DS_WRITE_END], p->f[HR_DS_WRITE_TIME], 0, 0, 0, NULL},
	    .meta_s = p->f[HR_DS_META_TIME],
	};
	int64_t fdopens = counter_value(p->c[HR_DS_FDOPENS]);

	/* OPENS includes FDOPENS. */
	other_add(&c, HR_OP_fopen64, counter_value(p->c[HR_DS_OPENS]) - fdopens,
		  p->f[HR_DS_OPEN_START], p->f[HR_DS_OPEN_END]);
	other_add(&c, HR_OP_fdopen, fdopens, p->f[HR_DS_OPEN_START], p->f[HR_DS_OPEN_END]);
	other_add(&c, HR_OP_fseek, p->c[HR_DS_SEEKS], 0, 0);
	other_add(&c, HR_OP_fflush, p->c[HR_DS_FLUSHES], 0, 0);
	return record_add(d, &c);
}

/* Reads a record of n words. 0; -ENODATA: there are no more; -errno. */
static int record_read(struct darshan *d, uint64_t *words, size_t n)
{
	long got = hr_input_fill(d->source, words, n * sizeof(*words));

	if (got < 0)
		return (int)got;
	if ((size_t)got < n * sizeof(*words)) {
		d->cut |= got > 0;
		return -ENODATA;
	}
	hr__dlog_swap(d, words, n);
	return hr_import_stopped(d->f) ? -ECANCELED : 0;
}

int hr__dlog_posix(struct darshan *d)
{
	uint32_t version = d->header.versions[HR_DARSHAN_POSIX];
	uint64_t words[RECORD_WORDS];
	struct hr_darshan_posix rec;
	int r = 0;

	if (!hr__dlog_module(d, HR_DARSHAN_POSIX, POSIX_VERSION))
		return 0;
	while (!r && !(r = record_read(d, words, posix_words(version)))) {
		if (!posix_convert(words, posix_words(version), version)) {
			d->n_mixed++;
			continue;
		}
		memcpy(&rec, words, sizeof(rec));
		r = posix_add(d, &rec);
	}
	return r == -ENODATA ? 0 : r;
}

int hr__dlog_stdio(struct darshan *d)
{
	bool old = d->header.versions[HR_DARSHAN_STDIO] == 1;
	uint64_t words[RECORD_WORDS];
	size_t n = old ? STDIO_WORDS - 1 : STDIO_WORDS;
	struct hr_darshan_stdio rec;
	int r = 0;

	if (!hr__dlog_module(d, HR_DARSHAN_STDIO, STDIO_VERSION))
		return 0;
	while (!r && !(r = record_read(d, words, n))) {
		size_t used = n;

		if (old) /* without FDOPENS */
			words_insert(words, &used, 2 + HR_DS_FDOPENS, 1);
		memcpy(&rec, words, sizeof(rec));
		r = stdio_add(d, &rec);
	}
	return r == -ENODATA ? 0 : r;
}

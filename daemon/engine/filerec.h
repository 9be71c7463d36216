/* SPDX-License-Identifier: Apache-2.0 */
/*
 * filerec.h - the counters of each (process, file, api), like Darshan's
 *
 * Owner     The engine; drain thread.
 * Lifetime  The first operation makes a record. It is `open` while a descriptor is, else `idle`, in
 *           the order of last operations. It is sent and removed: after HR_FILE_IDLE_NS without an
 *           operation; when its process ends; when there are more than HR_FILERECS_MOST records or
 *           HR_FILERECS_IDLE idle ones (those idle longest, HR_FILERECS_LESS more than needed). A
 *           checkpoint sends all, and keeps open ones with zero counters and the state of sequence
 *           detection.
 */
#ifndef HEADRACE_DAEMON_ENGINE_FILEREC_H
#define HEADRACE_DAEMON_ENGINE_FILEREC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/map64.h"

#define HR_FILE_IDLE_NS	 UINT64_C(5000000000)
#define HR_FILERECS_MOST 4096u
#define HR_FILERECS_IDLE 256u /* few enough to stay in the processor's caches */
/* so many more than the excess are removed, since each time costs a frame */
#define HR_FILERECS_LESS 64u
#define HR_FILE_BINS	 48u /* sizes of 2^47 bytes and more share the last bin */
#define HR_FEW_BINS	 4u
#define HR_ALIGN_BYTES	 4096u

/* The part that outlives a checkpoint. */
struct hr_filerec_tail {
	uint64_t proc;
	uint32_t file;
	uint32_t api;
	int64_t read_start, read_end; /* of the previous read; -1: none */
	int64_t write_start, write_end;
	uint32_t last_kind; /* 0 none, 1 read, 2 write */
	uint32_t refs;	    /* descriptors open on it */
};

/* Counts of a few sizes, as files have. With more sizes it uses an array of all bins. */
struct hr_few_hist {
	uint32_t count[HR_FEW_BINS];
	uint8_t bin[HR_FEW_BINS];
	uint32_t *all; /* HR_FILE_BINS counts; NULL: the few suffice */
};

enum hr_filerec_count {
	HR_FILE_OPENS,
	HR_FILE_READS,
	HR_FILE_WRITES,
	HR_FILE_SEEKS,
	HR_FILE_STATS,
	HR_FILE_SYNCS,
	HR_FILE_META,
	HR_FILE_COUNTS
};

/* What checkpoints have sent of it, for pictures of a running job (live.h). */
struct hr_filerec_past {
	uint64_t ops, bytes_read, bytes_written, dur_ns, max_ns;
};

/* Small, since thousands are in use. 32 bits suffice between two checkpoints. */
struct hr_filerec {
	struct hr_filerec_tail t;
	bool dirty; /* has something to send */
	uint64_t first_ns, last_ns;
	uint32_t seq_reads, consec_reads, seq_writes, consec_writes, rw_switches, unaligned;
	uint64_t ops[HR_FILE_COUNTS];
	uint64_t bytes_read, bytes_written;
	uint64_t read_ns, write_ns, meta_ns;
	uint64_t max_read_ns, max_write_ns;
	struct hr_few_hist read_hist, write_hist;
	struct hr_filerec_past *past; /* NULL: none */
};

/* Neighbours in a list by last operation. A separate array: a walk touches few cache lines. */
struct hr_filerec_link {
	uint32_t newer, older;
};

struct hr_filerec_list {
	uint32_t oldest, newest;
	uint32_t n;
};

struct hr_filerecs {
	struct hr_filerec *v;
	struct hr_filerec_link *links; /* of `v`; unused slots are chained by `newer` */
	uint32_t n, room, unused;
	uint32_t live;
	struct hr_map64 by_key;
	struct hr_filerec_list open, idle;
};

struct hr_file_op {
	uint8_t class; /* enum hr_class */
	bool failed;
	int64_t offset; /* HR_OFFSET_NONE */
	uint64_t bytes;
	uint64_t count; /* 1, or calls combined into an aggregate */
	uint64_t start_ns;
	uint64_t dur_ns;
};

void hr_filerecs_init(struct hr_filerecs *f);
void hr_filerecs_done(struct hr_filerecs *f);

static inline bool hr__filerec_is(const struct hr_filerecs *f, uint32_t i, uint64_t proc,
				  uint32_t file, uint32_t api)
{
	return i < f->n && f->v[i].t.proc == proc && f->v[i].t.file == file && f->v[i].t.api == api;
}

/* An index, or UINT32_MAX; tries `cached` first. */
uint32_t hr_filerec_find(const struct hr_filerecs *f, uint64_t proc, uint32_t file, uint32_t api,
			 uint32_t cached);

uint32_t hr__filerec_get(struct hr_filerecs *f, uint64_t proc, uint32_t file, uint32_t api);

/* Index of a record, made if absent; *cached: the caller's last. UINT32_MAX: out of memory. */
static inline uint32_t hr_filerec_get(struct hr_filerecs *f, uint64_t proc, uint32_t file,
				      uint32_t api, uint32_t *cached)
{
	if (!__builtin_expect(hr__filerec_is(f, *cached, proc, file, api), 1))
		*cached = hr__filerec_get(f, proc, file, api);
	return *cached;
}

void hr_filerec_prefetch(const struct hr_filerecs *f, uint64_t proc, uint32_t file, uint32_t api);

/* 0 or -ENOMEM. */
int hr_filerec_add(struct hr_filerecs *f, uint32_t index, const struct hr_file_op *op);
/*
 * Many operations from op->start_ns on, in `dur_ns`; `sum_ns`: sum of their durations, the longest
 * `max_ns`. Their order is unknown: sequences are not counted.
 */
int hr_filerec_tally(struct hr_filerecs *f, uint32_t index, const struct hr_file_op *op,
		     uint64_t sum_ns, uint64_t max_ns);
void hr_filerec_refs(struct hr_filerecs *f, uint32_t index, int change);

/*
 * Up to `max` records to be sent at `now_ns`, longest idle first: idle for HR_FILE_IDLE_NS, or in
 * excess of a limit (without idle ones, also open ones). Returns how many; the caller sends and
 * removes them.
 */
uint32_t hr_filerecs_due(const struct hr_filerecs *f, uint64_t now_ns, uint32_t *indexes,
			 uint32_t max);

static inline bool hr_filerecs_full(const struct hr_filerecs *f)
{
	return f->idle.n > HR_FILERECS_IDLE || f->live > HR_FILERECS_MOST;
}

void hr_filerec_remove(struct hr_filerecs *f, uint32_t index);

/* Pairs (bin, count), lowest bin first; `pairs`: 2 * HR_FILE_BINS. Returns values written. */
size_t hr_few_hist_pairs(const struct hr_few_hist *h, uint64_t *pairs);

/* Zeroes the counters; the tail stays, and the past grows, if there is memory for it. */
void hr_filerec_reset(struct hr_filerec *r);

struct hr_filerec_past hr_filerec_all(const struct hr_filerec *r);

int hr_filerec_restore(struct hr_filerecs *f, const struct hr_filerec_tail *tail);

#endif

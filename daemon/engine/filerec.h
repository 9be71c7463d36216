/* SPDX-License-Identifier: Apache-2.0 */
/*
 * filerec.h - the counters of each (process, file, api), like Darshan's
 *
 * Owner     The engine; drain thread.
 * Lifetime  A record is made by the first operation. While a descriptor is open it is `open`, else
 *           `idle`, in the order of its last operation. It is sent and removed after
 *           HR_FILE_IDLE_NS without an operation, when its process ends, or when there are more
 *           than HR_FILERECS_MOST records or HR_FILERECS_IDLE idle ones (the longest idle first,
 *           until HR_FILERECS_LESS fewer are left). At a checkpoint all are sent; open ones are
 *           kept with zero counters and what sequence detection needs.
 */
#ifndef HEADRACE_DAEMON_ENGINE_FILEREC_H
#define HEADRACE_DAEMON_ENGINE_FILEREC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/map64.h"

#define HR_FILE_IDLE_NS	 UINT64_C(5000000000)
#define HR_FILERECS_MOST 4096u
#define HR_FILERECS_IDLE 256u /* idle records: few enough to stay in the processor's caches */
/* so many below the limit are left once it is exceeded, since each time costs a frame */
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

/* A histogram of a few sizes, as files have: with more sizes it moves to an array of all bins. */
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

/* What was sent of it at checkpoints, for pictures of a running job (live.h). */
struct hr_filerec_past {
	uint64_t ops, bytes_read, bytes_written, dur_ns, max_ns;
};

/* Small, since thousands are in use. 32 bits suffice for the slots between two checkpoints. */
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

/* Neighbours in a list by last operation; in their own array, so a walk touches few lines. */
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

/* One operation on a file, as its record needs it. */
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

/* Index or UINT32_MAX; tries `cached` first. */
uint32_t hr_filerec_find(const struct hr_filerecs *f, uint64_t proc, uint32_t file, uint32_t api,
			 uint32_t cached);

uint32_t hr__filerec_get(struct hr_filerecs *f, uint64_t proc, uint32_t file, uint32_t api);

/* Index of a record, made when absent; *cached: the caller's last. UINT32_MAX: out of memory. */
static inline uint32_t hr_filerec_get(struct hr_filerecs *f, uint64_t proc, uint32_t file,
				      uint32_t api, uint32_t *cached)
{
	if (!__builtin_expect(hr__filerec_is(f, *cached, proc, file, api), 1))
		*cached = hr__filerec_get(f, proc, file, api);
	return *cached;
}

/* Prefetches the record of a key. */
void hr_filerec_prefetch(const struct hr_filerecs *f, uint64_t proc, uint32_t file, uint32_t api);

/* 0 or -ENOMEM. */
int hr_filerec_add(struct hr_filerecs *f, uint32_t index, const struct hr_file_op *op);
/*
 * Many operations at once, in `dur_ns` from op->start_ns on: they took `sum_ns`, the longest
 * `max_ns`. Their order is unknown, so sequences are not counted.
 */
int hr_filerec_tally(struct hr_filerecs *f, uint32_t index, const struct hr_file_op *op,
		     uint64_t sum_ns, uint64_t max_ns);
void hr_filerec_refs(struct hr_filerecs *f, uint32_t index, int change);

/*
 * Records to be sent at `now_ns`, longest idle first, at most `max`: idle for HR_FILE_IDLE_NS, or
 * in excess of a limit (open ones, too, when no idle one is left). The caller sends and removes
 * them. Returns how many.
 */
uint32_t hr_filerecs_due(const struct hr_filerecs *f, uint64_t now_ns, uint32_t *indexes,
			 uint32_t max);

/* Whether there are more than a limit allows. */
static inline bool hr_filerecs_full(const struct hr_filerecs *f)
{
	return f->idle.n > HR_FILERECS_IDLE || f->live > HR_FILERECS_MOST;
}

void hr_filerec_remove(struct hr_filerecs *f, uint32_t index);

/* Pairs (bin, count), lowest bin first; `pairs` has room for 2 * HR_FILE_BINS. Returns values written. */
size_t hr_few_hist_pairs(const struct hr_few_hist *h, uint64_t *pairs);

/* Sets the counters to zero; the tail stays, and the past grows (if there is memory for it). */
void hr_filerec_reset(struct hr_filerec *r);

/* The sums since the record was made. */
struct hr_filerec_past hr_filerec_all(const struct hr_filerec *r);

int hr_filerec_restore(struct hr_filerecs *f, const struct hr_filerec_tail *tail);

#endif

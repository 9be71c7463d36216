/* SPDX-License-Identifier: Apache-2.0 */
/*
 * filerec.h - the counters of each (process, file, api), like Darshan's
 *
 * Owner     The engine of headraced, or a stream of `headrace import`; one thread.
 * Lifetime  The first operation makes a record. The list `open` has the records of files that a
 *           descriptor has open, the list `idle` the others, both in the order of last operations.
 *           A record is sent and removed after HR_FILE_IDLE_NS without an operation, and when its
 *           process ends. If there are too many records (HR_FILERECS_MOST, HR_FILERECS_IDLE), the
 *           oldest ones are also sent and removed. A checkpoint sends all records; those in `open`
 *           remain, with zero counters and the state of sequence detection.
 */
#ifndef HEADRACE_COMMON_FILEREC_H
#define HEADRACE_COMMON_FILEREC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/map64.h"

#define HR_FILE_IDLE_NS	 UINT64_C(5000000000)
#define HR_FILERECS_MOST 4096u
#define HR_FILERECS_IDLE 256u /* few, so that they stay in the processor's caches */
/* A removal takes this many records more than necessary, because each removal costs a frame. */
#define HR_FILERECS_LESS 64u
#define HR_FILE_BINS	 48u /* sizes of 2^47 bytes and more share the last bin */
#define HR_FEW_BINS	 4u
#define HR_ALIGN_BYTES	 4096u

/* What moves data: index of the counters of reads, and of writes. */
enum hr_filerec_way { HR_WAY_READ, HR_WAY_WRITE, HR_WAYS };

/* The part of a file record that remains after a checkpoint. */
struct hr_filerec_tail {
	uint64_t proc;
	uint32_t file;
	uint32_t api;
	struct {
		int64_t start, end;
	} at[HR_WAYS];	    /* position of the previous read, and write; -1: none */
	uint32_t last_kind; /* kind of the last operation: 0 none, 1 read, 2 write */
	uint32_t refs;	    /* number of descriptors that have the file open */
};

/* A histogram of up to four bins, which are enough for most files, or (`all`) of all bins. */
struct hr_few_hist {
	uint32_t count[HR_FEW_BINS];
	uint8_t bin[HR_FEW_BINS];
	uint32_t *all; /* counts of all HR_FILE_BINS bins; NULL: unused */
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

/* The counts of a file record that checkpoints have sent, for pictures (live.h). */
struct hr_filerec_past {
	uint64_t ops, bytes_read, bytes_written, dur_ns, max_ns;
};

/* The counters of reads, or of writes. */
struct hr_filerec_moved {
	uint32_t seq, consec;
	uint64_t bytes, ns, max_ns;
	struct hr_few_hist hist; /* of sizes */
};

/*
 * The counters of one (process, file, API). Kept small: counts between checkpoints fit into 32
 * bits.
 */
struct hr_filerec {
	struct hr_filerec_tail t;
	bool dirty;
	uint64_t first_ns, last_ns;
	uint32_t rw_switches, unaligned;
	uint64_t ops[HR_FILE_COUNTS];
	uint64_t meta_ns;
	struct hr_filerec_moved moved[HR_WAYS];
	struct hr_filerec_past *past; /* NULL: no checkpoint has sent counts of this record */
};

/* The neighbours of a file record. A separate array, so that a walk touches few cache lines. */
struct hr_filerec_link {
	uint32_t newer, older;
};

struct hr_filerec_list {
	uint32_t oldest, newest;
	uint32_t n;
};

struct hr_filerecs {
	struct hr_filerec *v;
	/* neighbours of each element of `v`; unused elements are chained by `newer` */
	struct hr_filerec_link *links;
	uint32_t n, room, unused;
	uint32_t live;
	struct hr_map64 by_key;
	struct hr_filerec_list open, idle;
};

struct hr_file_op {
	uint8_t class; /* enum hr_class */
	bool failed;
	int64_t offset; /* offset of the operation, or HR_OFFSET_NONE */
	uint64_t bytes;
	uint64_t count; /* 1, or the number of calls in an aggregate */
	uint64_t start_ns;
	uint64_t dur_ns;
};

/*
 * Divides a copy from a first file to a second into the operations of each file. The time of the
 * copy counts for one file only: for the second if the call has the class write, else for the
 * first. If only one of the files is recorded, the time counts for that file. Returns whether the
 * call moves data (so the first file is read, and the second is written).
 */
bool hr_file_op_divide(const struct hr_file_op *op, int64_t offset2, bool has_first,
		       bool has_second, struct hr_file_op *ret_first,
		       struct hr_file_op *ret_second);

void hr_filerecs_init(struct hr_filerecs *f);
void hr_filerecs_done(struct hr_filerecs *f);

static inline bool hr__filerec_is(const struct hr_filerecs *f, uint32_t i, uint64_t proc,
				  uint32_t file, uint32_t api)
{
	return i < f->n && f->v[i].t.proc == proc && f->v[i].t.file == file && f->v[i].t.api == api;
}

/* Returns the index of a file record; UINT32_MAX: none. `cached`: the index to try first. */
uint32_t hr_filerec_find(const struct hr_filerecs *f, uint64_t proc, uint32_t file, uint32_t api,
			 uint32_t cached);

uint32_t hr__filerec_get(struct hr_filerecs *f, uint64_t proc, uint32_t file, uint32_t api);

/*
 * Finds or makes a file record, and returns its index. *cached: the index that the caller's last
 * call returned. UINT32_MAX: no memory.
 */
static inline uint32_t hr_filerec_get(struct hr_filerecs *f, uint64_t proc, uint32_t file,
				      uint32_t api, uint32_t *cached)
{
	if (!__builtin_expect(hr__filerec_is(f, *cached, proc, file, api), 1))
		*cached = hr__filerec_get(f, proc, file, api);
	return *cached;
}

void hr_filerec_prefetch(const struct hr_filerecs *f, uint64_t proc, uint32_t file, uint32_t api);

/* Adds one operation. Returns 0 or -ENOMEM. */
int hr_filerec_add(struct hr_filerecs *f, uint32_t index, const struct hr_file_op *op);
/*
 * Adds op->count operations whose order is unknown, so sequences are not counted. The first
 * operation begins at op->start_ns, and the last ends op->dur_ns later. The sum of their durations
 * is `sum_ns`, and the longest takes `max_ns`.
 */
int hr_filerec_tally(struct hr_filerecs *f, uint32_t index, const struct hr_file_op *op,
		     uint64_t sum_ns, uint64_t max_ns);
void hr_filerec_refs(struct hr_filerecs *f, uint32_t index, int change);

/*
 * Finds up to `max` file records to send and remove: those above the limits, and those unused for
 * HR_FILE_IDLE_NS. Records of closed files come first, the oldest before the others, then records
 * of open files. Returns the number of records.
 */
uint32_t hr_filerecs_due(const struct hr_filerecs *f, uint64_t now_ns, uint32_t *indexes,
			 uint32_t max);

static inline bool hr_filerecs_full(const struct hr_filerecs *f)
{
	return f->idle.n > HR_FILERECS_IDLE || f->live > HR_FILERECS_MOST;
}

void hr_filerec_remove(struct hr_filerecs *f, uint32_t index);

/*
 * Writes pairs (bin, count), lowest bin first, to `pairs` (2 * HR_FILE_BINS values). Returns the
 * number of values written.
 */
size_t hr_few_hist_pairs(const struct hr_few_hist *h, uint64_t *pairs);

/* Adds the counters to `past` (unless memory is short), then sets them to zero, but keeps `t`. */
void hr_filerec_reset(struct hr_filerec *r);

struct hr_filerec_past hr_filerec_all(const struct hr_filerec *r);

int hr_filerec_restore(struct hr_filerecs *f, const struct hr_filerec_tail *tail);

#endif

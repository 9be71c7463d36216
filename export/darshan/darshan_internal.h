/* SPDX-License-Identifier: Apache-2.0 */
/*
 * darshan_internal.h - what the files of the Darshan exporter share
 *
 *      events --darshan_order.c--> operations in the order of their ends, stream by stream
 *                  |
 *                  +--> darshan_posix.c, darshan_stdio.c: counters of each (file, rank)
 *                  +--> darshan_heat.c: bytes of each rank over time
 *                  +--> darshan_dxt.c: segments, in a temporary file
 *      file records --darshan_totals.c--> counters of operations without events
 *      roll-ups --darshan_rollups.c--> their bytes over time
 *
 *      darshan_write.c: shared records (darshan_reduce.c) --> the log
 *
 * A job may have millions of files, and each epoch of a training may have new workers. Counters
 * belong to a file and a rank. What Darshan follows from one call to the next (positions, ends)
 * belongs to a file and a process, and is freed when the process has ended.
 *
 * Owner     One struct hr__darshan owns everything; one thread.
 * Errors    Functions return 0 or -errno.
 */
#ifndef HEADRACE_EXPORT_DARSHAN_INTERNAL_H
#define HEADRACE_EXPORT_DARSHAN_INTERNAL_H

#include <stdbool.h>

#include "common/arena.h"
#include "common/event.h"
#include "common/map64.h"
#include "common/ops.h"
#include "export/darshan/darshan_format.h"
#include "export/export.h"

/* ---- files and ranks ---- */

enum hr__darshan_group { HR__DARSHAN_POSIX, HR__DARSHAN_STDIO, HR__DARSHAN_GROUPS };

enum hr__darshan_way { HR__DARSHAN_WRITES, HR__DARSHAN_READS, HR__DARSHAN_WAYS };

struct hr__darshan_name {
	uint64_t id;
	const uint8_t *path; /* not terminated */
	uint32_t bytes;
	bool used; /* by a record */
};

/* Sums of the operations of a (file, rank, group): members of file records that are added up. */
/* clang-format off */
#define HR__DARSHAN_SUMS(X) \
	X(opens) X(reads) X(writes) X(seeks) X(stats) X(syncs) X(meta_ops) \
	X(bytes_read) X(bytes_written) X(read_ns) X(write_ns) X(meta_ns) \
	X(seq_reads) X(consec_reads) X(seq_writes) X(consec_writes) X(rw_switches) X(unaligned)
/* clang-format on */

struct hr__darshan_sums {
#define HR__DARSHAN_SUM(name) uint64_t name;
	HR__DARSHAN_SUMS(HR__DARSHAN_SUM)
#undef HR__DARSHAN_SUM
};

/* Those of file records, and what only these have. */
struct hr__darshan_totals {
	struct hr__darshan_sums sums;
	uint64_t max_read_ns, max_write_ns;
	uint64_t sizes[HR__DARSHAN_WAYS][HR_DARSHAN_SIZES];
	int64_t first_ns, last_ns; /* since the start of the job */
};

#define HR__DARSHAN_VALUES 32 /* Darshan, too, counts the first 32 values of a file */

struct hr__darshan_values {
	struct hr__darshan_value {
		int64_t value, count;
	} * list;
	uint8_t n, room;
};

struct hr__darshan_posix {
	struct hr_darshan_posix log;
	struct hr__darshan_values access, strides;
	const char *host;
	uint64_t segments[HR__DARSHAN_WAYS];
	uint64_t segments_at[HR__DARSHAN_WAYS]; /* index of the next segment in the file */
};

struct hr__darshan_stdio {
	struct hr_darshan_stdio log;
	bool lost_read, lost_write; /* bytes moved at an unknown position */
};

/* A file that a rank used. */
struct hr__darshan_use {
	uint32_t name;
	int32_t rank;
	struct hr__darshan_posix *posix; /* NULL: no operation that Darshan counts */
	struct hr__darshan_stdio *stdio;
	struct hr__darshan_sums *seen; /* events of STDIO */
	/* Numbers of operations: with events, and in file records. */
	uint64_t ops[HR__DARSHAN_GROUPS], recorded[HR__DARSHAN_GROUPS];
	struct hr__darshan_totals *totals[HR__DARSHAN_GROUPS]; /* if `recorded` is larger */
};

/* What Darshan follows from call to call, for a (file, process, group). */
struct hr__darshan_state {
	uint32_t use;
	enum { HR__DARSHAN_NO_IO, HR__DARSHAN_DID_READ, HR__DARSHAN_DID_WRITE } last_io;
	int64_t position; /* after the last call; -1: unknown */
	int64_t last[2];  /* last byte of the previous call; index: hr__darshan_way */
	int64_t end[2];	  /* ns since the start of the job: end of the latest call */
	int64_t meta_end;
};

struct hr__darshan_process {
	struct hr_map64 by_file; /* key: file << 1 | group; value: index in `states` */
	struct hr__darshan_state *states;
	size_t n, room;
};

/* ---- the export ---- */

struct hr__darshan_heat_row {
	int32_t rank;
	enum hr__darshan_group group;
	int64_t bytes[HR__DARSHAN_WAYS][200];
};

extern const char *const hr__darshan_heat_names[HR__DARSHAN_GROUPS]; /* of their records */

#define HR__DARSHAN_BINS	 200
#define HR__DARSHAN_BIN_NS	 INT64_C(100000000)
#define HR__DARSHAN_TIMES	 65536u
#define HR__DARSHAN_SEGMENTS_MAX UINT64_C(4194304) /* more, and PyDarshan runs out of memory */

struct hr__darshan_heat {
	int64_t bin_ns;
	struct hr__darshan_heat_row **rows;
	size_t n, room;
	struct hr_map64 by_key; /* key: rank << 1 | group */
};

enum hr__darshan_pass {
	HR__DARSHAN_COUNT, /* counts everything */
	HR__DARSHAN_CUT,   /* counts the segments up to a time */
	HR__DARSHAN_PLACE  /* writes the segments to the temporary file */
};

struct hr__darshan_dxt {
	uint64_t total;
	uint64_t limit;
	int64_t cut_ns;	 /* segments that start later are left out; INT64_MAX: none */
	int64_t time_ns; /* width of a bin of `times` */
	uint32_t *times; /* number of segments by start: HR__DARSHAN_TIMES bins */
	struct hr_darshan_segment *map;
	size_t map_bytes;
};

struct hr__darshan {
	struct hr_export *x;
	enum hr__darshan_pass pass;
	int64_t start_ns; /* wall clock */
	int64_t end_ns;	  /* since the start: end of the job, or of the last operation */
	int64_t n_ranks;  /* 1 for a job without ranks */
	int64_t n_recorded_ranks;
	uint64_t n_unranked;	 /* processes without a rank, in a job with ranks */
	bool whole;		 /* file records may be used: no limits of time or steps */
	uint64_t partial;	 /* bit N: module N lacks data */
	uint64_t left_out;	 /* segments that the limit excludes */
	uint64_t without_offset; /* reads and writes that have no segment */

	struct hr_arena memory;
	struct hr__darshan_name *names;
	size_t n_names, names_room;
	struct hr_map64 name_by_id;
	uint32_t **file_names; /* of each stream: index in `names`, by number of file */
	struct hr__darshan_use *uses;
	size_t n_uses, uses_room;
	struct hr_map64 use_by_key; /* key: name << 32 | rank */

	/* the stream that is being read */
	const struct hr_walk_stream *stream;
	uint32_t stream_index;
	struct hr__darshan_process *processes;

	struct hr__darshan_heat heat;
	struct hr__darshan_dxt dxt;
	struct hr_darshan_log log;
};

/* One operation. Times are in ns since the start of the job. */
struct hr__darshan_op {
	const struct hr_event *e;
	const struct hr_op_info *info;
	const struct hr_walk_process *process;
	int64_t start_ns, end_ns;
	uint64_t bytes; /* moved bytes */
};

/* ---- darshan_files.c ---- */

int hr__darshan_files_init(struct hr__darshan *d);
void hr__darshan_files_done(struct hr__darshan *d);

/* Starts or ends the reading of a stream. */
int hr__darshan_stream_begin(struct hr__darshan *d, uint32_t index);
void hr__darshan_stream_end(struct hr__darshan *d);
/* Frees the states of the processes that ended before this time of the boot clock. */
void hr__darshan_stream_pass(struct hr__darshan *d, uint64_t boot_ns);

int64_t hr__darshan_ns(const struct hr__darshan *d, uint64_t boot_ns);
int32_t hr__darshan_rank(const struct hr_walk_process *p);

/* Find or make an entry. NULL: no memory. */
struct hr__darshan_use *hr__darshan_use(struct hr__darshan *d, uint32_t file, int32_t rank);
struct hr__darshan_state *hr__darshan_state(struct hr__darshan *d, const struct hr__darshan_op *o,
					    uint32_t file, enum hr__darshan_group group);
struct hr__darshan_posix *hr__darshan_posix_record(struct hr__darshan *d,
						   struct hr__darshan_use *u);
struct hr__darshan_stdio *hr__darshan_stdio_record(struct hr__darshan *d,
						   struct hr__darshan_use *u);

/* Counts a value. Values above HR__DARSHAN_VALUES are ignored, as Darshan does. 0 or -ENOMEM. */
int hr__darshan_value_add(struct hr__darshan *d, struct hr__darshan_values *v, int64_t value);

/*
 * Writes the most frequent values, except 0, and their counts: 4 values, then 4 counts. Of equally
 * frequent values, the larger one comes first.
 */
void hr__darshan_common(struct hr__darshan_value *list, size_t n, int64_t *ret);

/* Returns the bucket of a size: 0-100, 100-1K, ... 1G+. */
unsigned hr__darshan_bucket(uint64_t bytes);

/* Adds the time of a call that does not overlap earlier calls, which ended at *last_ns. */
void hr__darshan_time_add(double *seconds, const struct hr__darshan_op *o, int64_t *last_ns);

/* Sets the times of the first start and the last end. 0: none yet. */
void hr__darshan_span(double *first, double *last, const struct hr__darshan_op *o);

/* ---- counters of one operation ---- */

int hr__darshan_posix_add(struct hr__darshan *d, const struct hr__darshan_op *o);
int hr__darshan_stdio_add(struct hr__darshan *d, const struct hr__darshan_op *o);
int hr__darshan_heat_add(struct hr__darshan *d, const struct hr__darshan_op *o,
			 enum hr__darshan_group group, enum hr__darshan_way way);
int hr__darshan_segment_add(struct hr__darshan *d, struct hr__darshan_posix *rec,
			    enum hr__darshan_way way, int64_t offset,
			    const struct hr__darshan_op *o);

/* ---- the steps of an export ---- */

/* Reads all events in the order of their ends, and counts each one (d->pass). */
int hr__darshan_events(struct hr__darshan *d);

/* Reads file records, and sets the counters of operations without events. */
int hr__darshan_totals(struct hr__darshan *d);

/* Adds the bytes of operations without events to the heat map. */
int hr__darshan_rollups(struct hr__darshan *d);

/*
 * Leaves out the segments that start after the time until which there are at most dxt.limit. The
 * next pass counts the others.
 */
void hr__darshan_dxt_cut(struct hr__darshan *d);
/* Makes the temporary file, and gives each record its place in it. 0 or -errno. */
int hr__darshan_dxt_place(struct hr__darshan *d);

/* Completes the records of all (file, rank). */
void hr__darshan_complete(struct hr__darshan *d);

/* Makes one record of the records of all ranks. */
void hr__darshan_posix_reduce(void *const *list, size_t n, struct hr_darshan_posix *ret);
void hr__darshan_stdio_reduce(void *const *list, size_t n, struct hr_darshan_stdio *ret);

int hr__darshan_job_write(struct hr__darshan *d);
int hr__darshan_heat_write(struct hr__darshan *d);
int hr__darshan_dxt_write(struct hr__darshan *d, const struct hr__darshan_use *u);
void hr__darshan_heat_done(struct hr__darshan *d);
void hr__darshan_dxt_done(struct hr__darshan *d);

#endif

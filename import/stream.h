/* SPDX-License-Identifier: Apache-2.0 */
/*
 * stream.h - a stream of the store, for readers
 *
 * A reader adds processes, threads, files, operations, regions and sums in any order; the stream
 * makes the frames, with the same sums as those of headraced. The order of operations should be
 * that of their ends, because they then need less space.
 *
 *      struct hr_import_stream *s;
 *      hr_import_stream(f, "node1", 5, &s);
 *      proc = hr_import_process(s, pid);
 *      thread = hr_import_thread(s, proc, tid);
 *      event.file = hr_import_path(s, "/data/a", 7, 0);
 *      hr_import_operation(s, thread, &event);
 *
 * Times are nanoseconds since 1970. For a recording with relative times, add its start.
 *
 * Owner     The import, which ends all streams. One thread at a time, that of the file.
 * Errors    0 or -errno. -EBADMSG: the values are not possible, and nothing was added. Functions
 *           that return a number return 0 if no memory is left; the number 0 is then accepted
 *           everywhere, and the stream fails at its next operation.
 */
#ifndef HEADRACE_IMPORT_STREAM_H
#define HEADRACE_IMPORT_STREAM_H

#include "common/event.h"
#include "common/region.h"
#include "import/reader.h"

#define HR_IMPORT_NODES_MOST 512u /* of a file; each has an open stream */

/* Finds the stream of a node in this file, or opens it. `bytes` 0: the node is not known. */
int hr_import_stream(struct hr_import_file *f, const char *node, size_t bytes,
		     struct hr_import_stream **ret);

/*
 * Like hr_import_stream, for a file whose processes belong to one node, of which the file may not
 * have the name. With --into, finds the node by the process.
 */
struct hr_import_origin {
	const char *node; /* NULL: unknown */
	int32_t pid;	  /* of the program; 0: unknown */
	int32_t rank;	  /* -1: unknown */
};
int hr_import_stream_of(struct hr_import_file *f, const struct hr_import_origin *origin,
			struct hr_import_stream **ret);

/* Times below this are not those of the wall clock, but begin near 0. */
#define HR_IMPORT_WALL_LEAST_NS INT64_C(1000000000000000000)

/*
 * For a file whose times are not nanoseconds since 1970: their difference. `known` false: it is
 * not known. A stream has one clock, which can be set at any time. Because 0 means that a time is
 * unknown, the caller adds HR_IMPORT_CLOCK_NS to all times of such a file.
 */
#define HR_IMPORT_CLOCK_NS 1
void hr_import_clock(struct hr_import_stream *s, int64_t real_minus_trace_ns, bool known);

/* ---- processes and threads ------------------------------------------------------------------- */

/*
 * Set what is known, at any time. Texts are copies (hr_import_text). The stream finds the parent from
 * pid and ppid, and the image before an exec from pid and exit "exec".
 */
struct hr_import_process {
	int32_t pid, ppid;
	int32_t rank, local_rank, worker; /* -1: unknown */
	uint32_t world_size;		  /* 0: unknown */
	int32_t loader, loader_worker, restart;
	uint32_t cpus, first_cpu, cpu_quota_milli; /* 0: unknown */
	const char *exe, *cmdline;		   /* NULL: unknown */
	const char *exit;			   /* "0", "SIGKILL"; NULL: unknown */
	const char *rank_source;
	uint64_t start_ns, end_ns;  /* 0: those of its first and last operation or region */
	uint64_t first_ns, last_ns; /* set by the stream: of operations and regions so far */
	bool alive;		    /* it had not ended: no end_ns */
};

/* Adds a process. Returns its number in the stream, from 1. */
uint32_t hr_import_process(struct hr_import_stream *s, int32_t pid);
/* The process with this number, until the next hr_import_process. Never NULL. */
struct hr_import_process *hr_import_process_at(struct hr_import_stream *s, uint32_t proc);
/* Copies a text that lives as long as the stream. NULL: no memory. */
const char *hr_import_text(struct hr_import_stream *s, const void *text, size_t bytes);

/* Finds or adds a thread. Returns its number in the stream, from 1. */
uint32_t hr_import_thread(struct hr_import_stream *s, uint32_t proc, uint32_t tid);

/* ---- files ----------------------------------------------------------------------------------- */

/* Finds or adds a file. Returns its id. `runtime`: a file of the Python installation. */
uint32_t hr_import_path(struct hr_import_stream *s, const void *path, size_t bytes, bool runtime);

/*
 * Adds a file whose path comes later, or is in another file: hr_import_path_resolve, or what
 * hr_import_shared_find has for `key` when all files are read. If it is never known, the file gets
 * the path `fallback`, and counts as a loss.
 */
uint32_t hr_import_path_later(struct hr_import_stream *s, uint64_t key, const char *fallback);
int hr_import_path_resolve(struct hr_import_stream *s, uint32_t file, const void *path,
			   size_t bytes);

/* ---- what happened --------------------------------------------------------------------------- */

/* Returns the operation with the name of a call. 0: it is no file I/O. */
uint16_t hr_import_op(const char *name, size_t bytes);

/*
 * Adds an operation of a thread. Start from hr_event_none(), and set what the file has. event->task
 * is ignored. -EBADMSG: no such op or class, or impossible times or sizes.
 */
int hr_import_operation(struct hr_import_stream *s, uint32_t thread, const struct hr_event *event);

/* A sum of operations whose single events are unknown, which is a loss (import_sums). */
struct hr_import_tally {
	uint16_t op;
	uint32_t file;	   /* 0: unknown */
	uint64_t count;	   /* > 0 */
	uint64_t bytes;	   /* sum */
	uint64_t start_ns; /* of the first operation */
	uint64_t end_ns;   /* of the last one */
	uint64_t dur_ns;   /* sum of their durations */
	uint64_t max_ns;   /* longest; 0: unknown */
};
int hr_import_tally(struct hr_import_stream *s, uint32_t thread, const struct hr_import_tally *t);

/* A text of a region, with its length. */
struct hr_import_slice {
	const char *p;
	size_t n;
};

#define HR_IMPORT_NAME_MOST 1000u /* bytes of a region's name, as of NVTX */
#define HR_IMPORT_ARGS_MOST 4095u

/* Returns the length of a text that is cut at the begin of a character of UTF-8. */
size_t hr_import_cut(const char *text, size_t bytes, size_t most);

/*
 * Adds a region. The stream sets proc, tid, domain, category, name and args of g->region, from the
 * thread and the texts.
 */
struct hr_import_region {
	struct hr_region region;
	struct hr_import_slice domain, category, name, args;
};
int hr_import_region(struct hr_import_stream *s, uint32_t thread, struct hr_import_region *g);

/*
 * The same for regions in any order: the stream computes their depth, and the step that they belong
 * to. It collects regions, and sorts them by thread and time. Regions that are far from their place
 * (more than 256 Ki regions) can get a depth that is too low. Steps and epochs have no depth, as in
 * a recording. A region without a step gets that of the region around it, or of the step of its
 * process at its start.
 */
int hr_import_region_nest(struct hr_import_stream *s, uint32_t thread,
			  const struct hr_import_region *region);
/* Adds the collected regions, and frees their memory. The stream does it at the end of its file. */
int hr_import_region_flush(struct hr_import_stream *s);

/* A single region of which only the kind is known. */
static inline struct hr_import_region hr_import_region_none(uint32_t kind)
{
	return (struct hr_import_region){
	    .region = {
		.kind = kind, .count = 1, .step = HR_REGION_UNKNOWN, .epoch = HR_REGION_UNKNOWN}};
}

/*
 * Adds a file record as it is, for formats that have no operations. The stream sends many at a time.
 * Add its roll-ups with hr_import_tally, with file 0. -EBADMSG: no such process.
 */
int hr_import_record(struct hr_import_stream *s, const Headrace__FileRecord *record);

/* The program of the job, for people. The first one counts. */
void hr_import_program(struct hr_import_stream *s, const char *name);

#endif

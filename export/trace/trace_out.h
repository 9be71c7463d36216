/* SPDX-License-Identifier: Apache-2.0 */
/*
 * trace_out.h - where the slices, counters and tracks of a trace go: Perfetto's packets or JSON
 *
 * trace.c decides what is in a trace, trace_tracks.c in which track, and a struct hr_trace_out
 * writes it. Names, categories and paths have numbers: a writer gets each text once (intern),
 * before the first slice that uses it, and again with each slice. Times are ns. After an error, a
 * writer drops everything, and `end` returns the error. One thread.
 */
#ifndef HEADRACE_EXPORT_TRACE_OUT_H
#define HEADRACE_EXPORT_TRACE_OUT_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

/* Arguments of slices. The numbers are the ids of their interned names. */
#define HR_ARGS(X)                                                                                 \
	X(PATH, "path")                                                                            \
	X(PATH2, "path2")                                                                          \
	X(OFFSET, "file_offset")                                                                   \
	X(BYTES, "bytes")                                                                          \
	X(ERRNO, "errno")                                                                          \
	X(CUT, "not_returned")                                                                     \
	X(STEP, "step")                                                                            \
	X(EPOCH, "epoch")                                                                          \
	X(DOMAIN, "domain")                                                                        \
	X(CATEGORY, "category")                                                                    \
	X(COUNT, "count")                                                                          \
	X(SUM_NS, "sum_ns")                                                                        \
	X(ARGS, "args")                                                                            \
	X(OPEN, "open")                                                                            \
	X(SCOPE, "scope")                                                                          \
	X(DEPTH, "depth")

enum hr_arg {
	HR_ARG_NONE,
#define HR__ARG(id, name) HR_ARG_##id,
	HR_ARGS(HR__ARG)
#undef HR__ARG
	    HR_ARG_END
};

const char *hr_arg_name(enum hr_arg arg);

struct hr_bytes {
	const void *data; /* bytes, not escaped */
	size_t bytes;
};

struct hr_argument {
	enum hr_arg name;
	enum { HR_ARG_INT, HR_ARG_BOOL, HR_ARG_INTERNED, HR_ARG_TEXT } type;
	int64_t value; /* INTERNED: the number of the text */
	struct hr_bytes text;
};

enum hr_interned { HR_INTERNED_CATEGORY, HR_INTERNED_NAME, HR_INTERNED_STRING };

struct hr_track {
	uint64_t id; /* unique, not 0 */
	uint64_t parent;
	const char *name; /* of the process, the thread or the track */
	int32_t pid;	  /* the process; 0: the track belongs to none */
	int32_t tid;	  /* not 0: the thread's own track */
	uint32_t thread;  /* recorded id of the thread, also of a track that is not its own */
	int32_t ppid;	  /* of a process: recorded pid of its parent; 0: unknown */
	uint32_t cpus, first_cpu, cpu_quota_milli; /* of a process; 0: unknown */
	bool process; /* the track of the process itself, which has no slices */
	enum { HR_TRACK_SLICES, HR_TRACK_COUNTER, HR_TRACK_BYTES } values;
};

enum hr_slice_type { HR_SLICE_BEGIN, HR_SLICE_END, HR_SLICE_INSTANT };

struct hr_slice {
	enum hr_slice_type type;
	uint64_t ns;
	const struct hr_track *track;
	uint64_t category, name; /* numbers; an end has none */
	struct hr_bytes category_text, name_text;
	const struct hr_argument *args;
	size_t n_args;
};

struct hr_trace_out {
	/* real_ns: the wall clock at boot_ns, which is a time of the trace's clock */
	void (*begin)(struct hr_trace_out *o, uint64_t boot_ns, uint64_t real_ns);
	/* NULL: the writer writes the texts with each slice */
	void (*intern)(struct hr_trace_out *o, enum hr_interned kind, uint64_t number,
		       const struct hr_bytes *text);
	void (*track)(struct hr_trace_out *o, const struct hr_track *t);
	void (*slice)(struct hr_trace_out *o, const struct hr_slice *s);
	void (*counter)(struct hr_trace_out *o, uint64_t ns, const struct hr_track *t,
			double value);
	/* Writes the end, and frees the writer. Returns 0 or -errno. */
	int (*end)(struct hr_trace_out *o);
	/* Typical bytes: of an operation without interned texts, a region, a value of a counter. */
	unsigned slice_bytes, region_bytes, counter_bytes;
	bool paths; /* each operation has the text of its path: paths are not interned */
};

/* Return 0 or -ENOMEM. `plain`: without gzip. */
int hr_perfetto_out_new(FILE *to, struct hr_trace_out **ret);
int hr_chrome_out_new(FILE *to, bool plain, struct hr_trace_out **ret);

#endif

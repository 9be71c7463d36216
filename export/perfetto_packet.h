/* SPDX-License-Identifier: Apache-2.0 */
/*
 * perfetto_packet.h - writes packets of a Perfetto trace (perfetto/protos/trace/trace_packet.proto)
 *
 * All packets belong to one sequence, so names and paths are interned once in the whole trace.
 * Timestamps are CLOCK_BOOTTIME in ns. Write errors stay in the FILE (ferror). One thread.
 */
#ifndef HEADRACE_EXPORT_PERFETTO_PACKET_H
#define HEADRACE_EXPORT_PERFETTO_PACKET_H

#include <stdint.h>
#include <stdio.h>

/* The largest packet of a slice without texts: a begin with all arguments, and an end. */
#define HR_SLICE_BYTES 120u

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
	X(OPEN, "open")

enum hr_arg {
	HR_ARG_NONE,
#define HR__ARG(id, name) HR_ARG_##id,
	HR_ARGS(HR__ARG)
#undef HR__ARG
};

struct hr_argument {
	enum hr_arg name;
	enum { HR_ARG_INT, HR_ARG_BOOL, HR_ARG_INTERNED, HR_ARG_TEXT } type;
	int64_t value; /* INTERNED: the id of a string */
	const char *text;
	size_t bytes;
};

enum hr_interned {
	HR_INTERNED_CATEGORY = 1,
	HR_INTERNED_NAME = 2,
	HR_INTERNED_ARGUMENT = 3, /* name of an argument */
	HR_INTERNED_STRING = 29
};

enum hr_slice_type { HR_SLICE_BEGIN = 1, HR_SLICE_END = 2, HR_SLICE_INSTANT = 3 };

struct hr_packets {
	FILE *to;
	uint64_t bytes; /* written so far */
};

/* Writes the clocks and the names of the arguments. real_ns: the wall clock at boot_ns. */
void hr_packets_begin(struct hr_packets *p, uint64_t boot_ns, uint64_t real_ns);

/* A text gets an id, which later packets use. */
void hr_packet_intern(struct hr_packets *p, enum hr_interned kind, uint64_t id, const char *text,
		      size_t bytes);

struct hr_track {
	uint64_t uuid; /* unique, not 0 */
	uint64_t parent;
	const char *name; /* of the process, the thread or the track */
	const char *description;
	int32_t pid; /* not 0: a process, or with `tid` a thread */
	int32_t tid;
	enum { HR_TRACK_SLICES, HR_TRACK_COUNTER, HR_TRACK_BYTES } values;
};
void hr_packet_track(struct hr_packets *p, const struct hr_track *t);

struct hr_slice {
	enum hr_slice_type type;
	uint64_t ns;
	uint64_t track;
	uint64_t category, name; /* ids; an end has none */
	const struct hr_argument *args;
	size_t n_args;
};
void hr_packet_slice(struct hr_packets *p, const struct hr_slice *s);

void hr_packet_counter(struct hr_packets *p, uint64_t ns, uint64_t track, double value);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * samples.h - how the operations of a mount slow down if more of them are under way
 *
 * If a mount adds a latency, an operation takes equally long however many are under way. If a mount
 * is saturated, it takes longer in proportion. The exponent e of a mount is the slope of the logarithm
 * of an operation's duration over that of the number of operations under way at its beginning: 0 for a
 * latency, 1 for a saturated mount.
 *
 * Samples are all operations that began in some slots of time, so that those under way at the same
 * time are known. If a list is full, it keeps half of the slots.
 */
#ifndef HEADRACE_QUERY_DIAGNOSIS_SAMPLES_H
#define HEADRACE_QUERY_DIAGNOSIS_SAMPLES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct hr_query;

struct hr_sample {
	int64_t from, to; /* wall clock, nanoseconds */
	uint32_t stream, file;
	uint16_t op; /* 0: a read at the end of a file, whose duration is not compared */
};

struct hr_samples {
	struct hr_sample *list;
	size_t n, room;
	unsigned halved; /* how often; slots whose number is a multiple of 2^halved are kept */
};

/* -ENOMEM. */
int hr__samples_add(struct hr_samples *s, const struct hr_sample *sample);
int hr__samples_merge(struct hr_samples *to, const struct hr_samples *from);

/* How a mount of a node reacts to load. */
struct hr_load {
	uint32_t stream, mount; /* hr_file_info.mount */
	double total_s;		/* sum of its operations' durations */
	uint16_t op;		/* the operation that takes most time; of it: */
	double exponent;	/* valid if `known` */
	bool known;		/* different numbers of operations were under way */
	double under_way;	/* operations under way on the mount, on average */
};

struct hr_loads {
	struct hr_load *list;
	size_t n, room;
};

/* The mount of a stream with most total_s; NULL: none. */
const struct hr_load *hr__load_of(const struct hr_loads *l, uint32_t stream);

/* Sorts the samples. The caller frees the list. -ENOMEM. */
int hr__loads_make(const struct hr_query *q, struct hr_samples *s, struct hr_loads *ret);

#endif

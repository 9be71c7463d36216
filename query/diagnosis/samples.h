/* SPDX-License-Identifier: Apache-2.0 */
/*
 * samples.h - how much the operations of a mount slow down if more of them are under way
 *
 * If a mount adds a latency, the duration of an operation does not depend on how many are under
 * way. If a mount is saturated, the duration is proportional to this number. The exponent e of a
 * mount is the slope of the logarithm of an operation's duration over the logarithm of the number
 * of operations under way at its beginning: 0 for a latency, 1 for a saturated mount.
 *
 * The samples are all operations that began in certain slots of time, so the number of operations
 * under way at each moment of a slot is known. If a list of samples is full, it drops every second
 * slot.
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
	uint16_t op; /* 0: a read at the end of a file; its duration is not compared */
};

struct hr_samples {
	struct hr_sample *list;
	size_t n, room;
	/* How often slots were dropped; slots whose number is a multiple of 2^halved are kept. */
	unsigned halved;
};

/* -ENOMEM. */
int hr__samples_add(struct hr_samples *s, const struct hr_sample *sample);
int hr__samples_merge(struct hr_samples *to, const struct hr_samples *from);

/*
 * How a mount of a node reacts to load. `exponent` and `under_way` are those of the operation `op`.
 */
struct hr_load {
	uint32_t stream, mount; /* hr_file_info.mount */
	double total_s;		/* sum of its operations' durations */
	uint16_t op;		/* the operation that takes most time of the storage */
	double exponent;	/* valid if `known` */
	bool known;		/* true: different numbers of operations were under way */
	double under_way;	/* mean number of operations under way on the mount */
};

struct hr_loads {
	struct hr_load *list;
	size_t n, room;
};

/* The load of the mount of a stream that has the largest total_s; NULL: none. */
const struct hr_load *hr__load_of(const struct hr_loads *l, uint32_t stream);

/* Sorts the samples. The caller frees the list. -ENOMEM. */
int hr__loads_make(const struct hr_query *q, struct hr_samples *s, struct hr_loads *ret);

#endif

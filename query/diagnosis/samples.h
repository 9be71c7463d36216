/* SPDX-License-Identifier: Apache-2.0 */
/*
 * samples.h - how much the operations of a mount slow down if more of them are under way
 *
 * On a mount that is not saturated, the duration of an operation does not depend on how many
 * operations are under way. On a saturated mount, the duration is proportional to this number n.
 * The exponent of a mount is the slope of log(duration) over log(n), where n is counted when the
 * operation begins: 0 if the mount is not saturated, 1 if it is saturated.
 *
 * Samples are all operations that began in certain slots of time, so the number of operations under
 * way at each moment of a slot is known. If the list is full, every second slot is dropped.
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
	uint16_t op; /* 0: a read that returned no data; its duration is not used */
};

struct hr_samples {
	struct hr_sample *list;
	size_t n, room;
	/* How often slots were dropped: multiples of 2^halved are left. */
	unsigned halved;
};

/* Both return 0 or -ENOMEM. */
int hr__samples_add(struct hr_samples *s, const struct hr_sample *sample);
int hr__samples_merge(struct hr_samples *to, const struct hr_samples *from);

/* How a mount reacts to load. `exponent` and `under_way` are those of the operation `op`. */
struct hr_load {
	uint32_t stream, mount; /* `mount`: see hr_file_info */
	double total_s;		/* sum of the durations of all its operations */
	uint16_t op;		/* the kind of operation that takes most time of the storage */
	double exponent;	/* valid if `known` */
	bool known;		/* false: too few different numbers of operations were under way */
	double under_way;	/* mean number of operations under way on the mount */
};

struct hr_loads {
	struct hr_load *list;
	size_t n, room;
};

/* Returns the load of the mount with the largest total_s of a stream; NULL: none. */
const struct hr_load *hr__load_of(const struct hr_loads *l, uint32_t stream);

/* Computes the load of each mount. Sorts the samples. The caller frees ret->list. -ENOMEM. */
int hr__loads_make(const struct hr_query *q, struct hr_samples *s, struct hr_loads *ret);

#endif

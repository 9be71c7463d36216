/* SPDX-License-Identifier: Apache-2.0 */
/*
 * region.h - regions of the application, which are named spans of time, and their encoding
 *
 * A job may have millions of ranges of microseconds, most of which differ only in start and
 * duration. The other fields form a key, which a frame (Regions of proto/headrace.proto) contains
 * only once. A frame is compressed as a whole, and needs 3 to 6 bytes per region. A struct
 * hr_regions belongs to one thread.
 */
#ifndef HEADRACE_COMMON_REGION_H
#define HEADRACE_COMMON_REGION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "proto/headrace.pb-c.h"

/*
 * X(NAME, number, text in SQL). The store contains the numbers, so they are never reused.
 *
 *      RANGE       pushed and popped, or a scope of the program: nests in its thread
 *      SPAN        started and ended by a handle, perhaps in another thread; does not nest
 *      MARK        one moment
 *      INPUT_WAIT  the training loop waits for its next batch
 *      FETCH       a DataLoader worker makes a batch
 *      CHECKPOINT  state is saved; RESTORE: state is loaded
 */
#define HR_REGION_KINDS(X)                                                                         \
	X(RANGE, 1, "range")                                                                       \
	X(SPAN, 2, "span")                                                                         \
	X(MARK, 3, "mark")                                                                         \
	X(STEP, 4, "step")                                                                         \
	X(EPOCH, 5, "epoch")                                                                       \
	X(INPUT_WAIT, 6, "input_wait")                                                             \
	X(FETCH, 7, "fetch")                                                                       \
	X(OPTIMIZER, 8, "optimizer")                                                               \
	X(CHECKPOINT, 9, "checkpoint")                                                             \
	X(RESTORE, 10, "restore")

enum hr_region_kind {
#define HR__REGION_KIND(name, number, text) HR_REGION_##name = (number),
	HR_REGION_KINDS(HR__REGION_KIND)
#undef HR__REGION_KIND
};

const char *hr_region_kind_name(uint32_t kind);			 /* NULL: unknown */
uint32_t hr_region_kind_by_name(const char *name, size_t bytes); /* 0: unknown */

#define HR_REGION_UNKNOWN UINT64_MAX /* value of step and epoch */

struct hr_region {
	uint64_t proc;
	uint32_t tid;
	uint32_t kind;
	uint32_t domain; /* domain, category, name and args are numbers of texts; 0: none */
	uint32_t category;
	uint32_t name;
	uint32_t args; /* JSON */
	uint32_t depth;
	bool open;
	uint64_t count;	   /* above 1: the sum of so many short regions with the same key */
	uint64_t start_ns; /* CLOCK_BOOTTIME; of a sum: start of its first region */
	uint64_t dur_ns;   /* of a sum: duration of all its regions */
	uint64_t step, epoch;
};

#define HR_REGIONS_MAX 65536u /* largest number of regions in a frame */

struct hr_regions;
int hr_regions_new(struct hr_regions **ret);
void hr_regions_free(struct hr_regions *r);

/* Adds a text to the open frame, unless it is there. *ret: its number; 0: empty. 0 or -ENOMEM. */
int hr_regions_text(struct hr_regions *r, const void *text, size_t bytes, uint32_t *ret);

/* Adds a region. -ENOSPC: the frame is full, so send the frame and call this again. -ENOMEM. */
int hr_regions_add(struct hr_regions *r, const struct hr_region *region);

/* Replaces the name `from` in the open frame. Until the next reset, call no other function. */
void hr_regions_rename(struct hr_regions *r, uint32_t from, const struct hr_region *to);

size_t hr_regions_count(const struct hr_regions *r);

/* Returns the open frame as a message, which `r` owns, and which is valid until the next call. */
const Headrace__Regions *hr_regions_message(struct hr_regions *r);

/* Starts an empty frame. Ids of texts in the old frame become invalid. */
void hr_regions_reset(struct hr_regions *r);

/*
 * Checks an unpacked message, and replaces differences by values in place. Call this once, before
 * hr_regions_get. Returns 0, or -EBADMSG if the message contradicts itself.
 */
int hr_regions_restore(Headrace__Regions *msg);

/* Returns whether the text with this number (0: none) of a restored message is `want`. */
bool hr_regions_text_is(const Headrace__Regions *msg, uint32_t text, const char *want);

/* Reads region i < msg->n_key of a restored message. */
void hr_regions_get(const Headrace__Regions *msg, size_t i, struct hr_region *ret);

#endif

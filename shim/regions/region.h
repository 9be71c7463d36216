/* SPDX-License-Identifier: Apache-2.0 */
/*
 * region.h - regions that the program reports: ranges, spans, marks, steps
 *
 * The core of headrace.h, NVTX and ITT. Open regions are in shared memory (abi.h), so that the
 * daemon can read them if the process dies. The end of a region writes its record. Any thread may
 * call these functions, also in a signal handler; they wait only for room in a ring.
 */
#ifndef HEADRACE_SHIM_REGIONS_REGION_H
#define HEADRACE_SHIM_REGIONS_REGION_H

#include "include/headrace.h"
#include "shim/core/internal.h"

/* The API that a range belongs to: hr__region_end() ends the innermost range of one API. */
#define HR__REGIONS_API 1u /* headrace.h; NVTX and ITT use hashes of the domain, highest bit set */

/* The number that NVTX attaches to a region, with NVTX's type. Unknown types are ignored. */
struct hr__payload {
	uint32_t type;
	uint64_t bits;
};
#define HR__PAYLOAD_TEXT 48u
/* Writes a JSON object. False: JSON cannot represent the number. */
bool hr__payload_text(const struct hr__payload *p, char out[HR__PAYLOAD_TEXT]);
/* Writes at most 20 digits, without a NUL. Returns the end of the digits. */
char *hr__put_digits(char *to, uint64_t n);

/* Gets a ring for the thread first, if possible. `payload` may be NULL. */
void hr__region_begin(struct headrace_name *name, uint32_t stack,
		      const struct hr__payload *payload);
void hr__region_end(uint32_t stack, const char *args);

/* Returns the handle of a span; 0: not recorded. */
uint64_t hr__region_start(struct headrace_name *name, const struct hr__payload *payload);
void hr__region_finish(uint64_t span, const char *args);

void hr__region_mark(struct headrace_name *name, const char *args);

/* region_short.c: a range ends. True: the range is part of a sum; false: it needs a record. */
bool hr__region_short(struct hr_ring_hdr *ring, const struct hr_region_cell *c, uint32_t depth,
		      uint64_t end);
void hr__region_shorts_end_dead(struct hr_ring_hdr *ring);

#endif

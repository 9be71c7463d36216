/* SPDX-License-Identifier: Apache-2.0 */
/*
 * region.h - what the program says that it is doing: ranges, spans, marks, steps
 *
 * Purpose   The core behind headrace.h, NVTX and ITT. What is open lies in shared memory (abi.h), so that it is known of the
 *           dead, too; a record says what is over.
 * Threads   Any, and signal handlers. Nothing here waits but for room in a ring.
 */
#ifndef HEADRACE_SHIM_REGIONS_REGION_H
#define HEADRACE_SHIM_REGIONS_REGION_H

#include "include/headrace.h"
#include "shim/core/internal.h"

/* Whose ranges: hr__region_end() ends the innermost of these, whatever others have begun inside. */
#define HR__REGIONS_API 1u /* headrace.h; others are hashes of a domain, with the highest bit set */

/* A number that goes with a region, as NVTX has it: its types, and what else is none. */
struct hr__payload {
	uint32_t type;
	uint64_t bits;
};
#define HR__PAYLOAD_TEXT 48u
/* A JSON object. False: no number that JSON has. */
bool hr__payload_text(const struct hr__payload *p, char out[HR__PAYLOAD_TEXT]);
/* 20 at most, without a NUL. Returns their end. */
char *hr__put_digits(char *to, uint64_t n);

/* Makes sure that the thread has a ring, if that can be. payload: NULL: none. */
void hr__region_begin(struct headrace_name *name, uint32_t stack,
		      const struct hr__payload *payload);
void hr__region_end(uint32_t stack, const char *args);

/* 0: it is not recorded. */
uint64_t hr__region_start(struct headrace_name *name, const struct hr__payload *payload);
void hr__region_finish(uint64_t span, const char *args);

void hr__region_mark(struct headrace_name *name, const char *args);

/*
 * region_short.c: a range of the thread's ended. True: it is one of a sum; false: it needs a record of its own.
 */
bool hr__region_short(struct hr_ring_hdr *ring, const struct hr_region_cell *c, uint32_t depth,
		      uint64_t end);
void hr__region_shorts_bury(struct hr_ring_hdr *ring);

#endif

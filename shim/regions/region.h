/* SPDX-License-Identifier: Apache-2.0 */
/*
 * region.h - regions that the program reports: ranges, spans, marks, steps
 *
 * headrace.h, NVTX and ITT use these functions. Open regions are in shared memory (abi.h), so that
 * the daemon can read them if the process dies. The end of a region writes its record. Any thread
 * may call the functions, also in a signal handler. They wait only for room in a ring.
 */
#ifndef HEADRACE_SHIM_REGIONS_REGION_H
#define HEADRACE_SHIM_REGIONS_REGION_H

#include "include/headrace.h"
#include "shim/core/internal.h"
#include "shim/core/linkname.h"

/* hr__region_end() ends the innermost range of the same interface, which this number names. */
#define HR__REGIONS_API	      1u /* headrace.h; others use a hash of the domain */
#define HR__REGIONS_FUNCTIONS 2u /* enter() and leave() of headrace.h */

/* A number that NVTX attaches to a region, with NVTX's type number. Unknown types are ignored. */
struct hr__payload {
	uint32_t type;
	uint64_t bits;
};
#define HR__PAYLOAD_TEXT 48u
/* Writes a JSON object. False: JSON cannot represent the number. */
bool hr__payload_text(const struct hr__payload *p, char out[HR__PAYLOAD_TEXT]);

/* Begins a range. If the thread has no ring, tries to get one first. `payload` may be NULL. */
void hr__region_begin(struct headrace_name *name, uint32_t stack,
		      const struct hr__payload *payload);
void hr__region_end(uint32_t stack, const char *args);
/* Records a range from `moment` (0 or a future time: now) until now. It is never in a stack. */
void hr__region_passed(struct headrace_name *name, uint64_t moment);

/*
 * Records a span of the last `us` microseconds, of the thread that began the current step of the
 * process. Without a step, and inside an input wait of the calling thread, it is not recorded.
 */
void hr__region_waited(struct headrace_name *name, uint64_t us);

/* Returns the handle of a span, or 0 if the span is not recorded. */
uint64_t hr__region_start(struct headrace_name *name, const struct hr__payload *payload);
void hr__region_finish(uint64_t span, const char *args);

void hr__region_mark(struct headrace_name *name, const char *args);

/* Ends the current step or epoch at `moment` (0: now), and begins another one or HEADRACE_NONE. */
void hr__region_step(int64_t step, uint64_t moment);
void hr__region_epoch(int64_t epoch, uint64_t moment);
void hr__region_step_undo(void); /* the current step is not recorded */
bool hr__regions_recorded(void); /* whether this thread's regions are recorded now */

/* region_short.c: ends a range. True: the range was added to a sum. False: it needs a record. */
bool hr__region_short(struct hr_ring_hdr *ring, const struct hr_region_cell *c, uint32_t depth,
		      uint64_t end);
void hr__region_shorts_end_dead(struct hr_ring_hdr *ring);

#endif

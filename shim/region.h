/* SPDX-License-Identifier: Apache-2.0 */
/*
 * region.h - what the program says that it is doing: ranges, spans, marks, steps
 *
 * Purpose   The core behind headrace.h, NVTX and ITT. What is open lies in shared memory (abi.h), so that it is known of the
 *           dead, too; a record says what is over.
 * Threads   Any, and signal handlers. Nothing here waits but for room in a ring.
 */
#ifndef HEADRACE_SHIM_REGION_H
#define HEADRACE_SHIM_REGION_H

#include "include/headrace.h"
#include "shim/internal.h"

/* Whose ranges: hr__region_end() ends the innermost of these, whatever others have begun inside. */
#define HR__REGIONS_API 1u /* headrace.h; others are hashes of a domain, with the highest bit set */

/* Makes sure that the thread has a ring, if that can be. */
void hr__region_begin(struct headrace_name *name, uint32_t stack);
void hr__region_end(uint32_t stack, const char *args);

/* 0: it is not recorded. */
uint64_t hr__region_start(struct headrace_name *name);
void hr__region_finish(uint64_t span, const char *args);

void hr__region_mark(struct headrace_name *name, const char *args);

/* What the owner of a ring left open when it died, before its next owner announces itself. */
void hr__regions_bury(struct hr_ring_hdr *ring);

#endif

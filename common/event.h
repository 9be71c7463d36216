/* SPDX-License-Identifier: Apache-2.0 */
/*
 * event.h - one I/O operation, for daemon, encoder, decoder and queries
 *
 * The daemon makes events from checked records. batch.h encodes arrays of events.
 */
#ifndef HEADRACE_COMMON_EVENT_H
#define HEADRACE_COMMON_EVENT_H

#include <stdint.h>

#include "common/ops.h"
#include "proto/abi.h"

/* Values of hr_event.bits: the HR_REC_* of abi.h that are stored, and the source of the event. */
#define HR_EV_SCOPE_RUNTIME HR_REC_RUNTIME
#define HR_EV_CUT	    HR_REC_CUT
#define HR_EV_BPF	    UINT32_C(256) /* the probes recorded the event, not the shim */

/* Value of hr_event.ret: the call failed, and the error is not known (imported traces). */
#define HR_RET_FAILED INT64_C(-4096)

struct hr_event {
	uint64_t start_ns; /* CLOCK_BOOTTIME */
	uint64_t dur_ns;
	int64_t offset; /* bytes; HR_OFFSET_NONE: unknown or not applicable */
	int64_t ret;	/* result; -errno or HR_RET_FAILED; HR_RET_NONE: the call did not return */
	uint64_t asked; /* requested bytes, or HR_ASKED_NONE */
	uint32_t file;	/* id of the file in the stream; 0: none */
	uint32_t file2; /* second file (rename, link, copy_file_range); 0: none */
	uint32_t task;	/* index in the tasks of the batch */
	uint32_t flags;
	int32_t fd;
	uint16_t op;
	uint16_t bits;
};

/*
 * An event of which nothing is known. Sources that do not give all columns start from it, so that a
 * missing value is not taken for a 0.
 */
static inline struct hr_event hr_event_none(void)
{
	return (struct hr_event){
	    .offset = HR_OFFSET_NONE, .ret = HR_RET_NONE, .asked = HR_ASKED_NONE, .fd = -1};
}

/* Returns the result of a call that failed with this errno. No errno: the error is not known. */
static inline int64_t hr_ret_of_errno(int64_t error)
{
	return error > 0 && error < -HR_RET_FAILED ? -error : HR_RET_FAILED;
}

struct hr_task {
	uint64_t proc;
	uint32_t tid;
};

#endif

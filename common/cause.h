/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cause.h - why the kernel ran an operation (docs/probes.md)
 *
 * The numbers are stored in KernelRecord.cause, and never reused.
 */
#ifndef HEADRACE_COMMON_CAUSE_H
#define HEADRACE_COMMON_CAUSE_H

enum hr_cause {
	HR_CAUSE_NONE,
	HR_CAUSE_SHIM,	     /* during a shim call that moves the same bytes */
	HR_CAUSE_STDIO,	     /* for a stream's buffer, during a stdio call or at exit */
	HR_CAUSE_AIO,	     /* for an asynchronous request that the shim recorded */
	HR_CAUSE_SYSCALL,    /* of a process with a session, outside of shim calls */
	HR_CAUSE_UNATTACHED, /* of a process without a session */
	HR_CAUSE_URING,	     /* for an io_uring request, at its completion */
	HR_CAUSE_FILL,	     /* pages that faults of a mapping read */
	HR_CAUSE_FETCH,	     /* pages that a read call reads */
	HR_CAUSE_EXCLUDED,   /* on an excluded path */
	HR_CAUSE_LOST,	     /* only counted, because the ring buffer of the probes was full */
	HR_CAUSE_FAULT,	     /* a fault of a mapping that waited for storage */
	HR_CAUSE_END
};

const char *hr_cause_name(unsigned cause); /* "shim"...; NULL: out of range. */

#endif

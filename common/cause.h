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
	HR_CAUSE_SHIM,	     /* in a shim call that moves the same bytes */
	HR_CAUSE_STDIO,	     /* in a stdio call, or at exit, for a stream's buffer */
	HR_CAUSE_AIO,	     /* for an asynchronous request that the shim recorded */
	HR_CAUSE_SYSCALL,    /* in a process with a session, outside of shim calls */
	HR_CAUSE_UNATTACHED, /* in a process without a session */
	HR_CAUSE_URING,	     /* for an io_uring request, at its completion */
	HR_CAUSE_FILL,	     /* pages read by faults of a mapping */
	HR_CAUSE_FETCH,	     /* pages read for a read call */
	HR_CAUSE_EXCLUDED,   /* on an excluded path */
	HR_CAUSE_LOST,	     /* only counted, because the ring buffer was full */
	HR_CAUSE_FAULT,	     /* a fault of a mapping that waited for storage */
	HR_CAUSE_END
};

const char *hr_cause_name(unsigned cause); /* "shim"...; NULL: out of range. */

#endif

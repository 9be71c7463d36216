/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cause.h - how the kernel came to see an operation (docs/probes.md)
 *
 * Stored in KernelRecord.cause: numbers are never reused.
 */
#ifndef HEADRACE_COMMON_CAUSE_H
#define HEADRACE_COMMON_CAUSE_H

enum hr_cause {
	HR_CAUSE_NONE,
	HR_CAUSE_SHIM,	     /* under a shim call that moves the same bytes */
	HR_CAUSE_STDIO,	     /* under a stdio call, or at exit: buffers */
	HR_CAUSE_AIO,	     /* for an asynchronous request that the shim saw */
	HR_CAUSE_SYSCALL,    /* in a process with a session, under no call of the shim */
	HR_CAUSE_UNATTACHED, /* in a process without a session */
	HR_CAUSE_URING,	     /* a completion of io_uring */
	HR_CAUSE_FILL,	     /* pages read in by faults of a mapping */
	HR_CAUSE_FETCH,	     /* pages read in for a read */
	HR_CAUSE_EXCLUDED,   /* on a path that is left out */
	HR_CAUSE_LOST,	     /* counted only: the ring buffer was full */
	HR_CAUSE_FAULT,	     /* a fault of a mapping that waited for storage */
	HR_CAUSE_END
};

/* "shim"...; NULL for out of range. */
const char *hr_cause_name(unsigned cause);

#endif

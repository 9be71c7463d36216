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
	HR_CAUSE_SHIM,	     /* during a call that the shim records with the same bytes */
	HR_CAUSE_STDIO,	     /* for the buffer of a stream, during a stdio call or at exit */
	HR_CAUSE_AIO,	     /* for an asynchronous request that the shim recorded */
	HR_CAUSE_SYSCALL,    /* a process with a session made it outside of recorded calls */
	HR_CAUSE_UNATTACHED, /* a process without a session made it */
	HR_CAUSE_URING,	     /* for an io_uring request, when it completed */
	HR_CAUSE_FILL,	     /* reads of pages for page faults of a mapping */
	HR_CAUSE_FETCH,	     /* reads of pages for a read call */
	HR_CAUSE_EXCLUDED,   /* on a path that a filter excludes */
	HR_CAUSE_LOST,	     /* only counted: the ring buffer of the probes was full */
	HR_CAUSE_FAULT,	     /* a page fault of a mapping, which waited for storage */
	HR_CAUSE_END
};

const char *hr_cause_name(unsigned cause);

#endif

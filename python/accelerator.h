/* SPDX-License-Identifier: Apache-2.0 */
/*
 * accelerator.h - whether an accelerator had work when a wait for data ended, and how busy it was
 *
 * After a step of an optimizer, this code records an event on CUDA's legacy default stream. If the
 * event is not complete at the end of the next wait, the accelerator had work during the whole
 * wait. This needs libcuda.so.1, loaded by the program, and a current context of the thread. This
 * code does not load CUDA, makes no context, never waits for the accelerator, and does nothing in a
 * forked child, where CUDA does not work.
 *
 * NVML reports how busy the accelerator was: it keeps samples of the last seconds, each of which is
 * the share of a period (1/6 to 1 s) in which at least one kernel ran. This code loads
 * libnvidia-ml.so.1, and reads the samples of the device of the thread that called first.
 *
 * Threads   Python's lock is held, so Python does not fork during a call of NVML. Each thread has
 *           an event of its own.
 * Lifetime  An event is never destroyed, because its context may end first.
 */
#ifndef HEADRACE_PYTHON_ACCELERATOR_H
#define HEADRACE_PYTHON_ACCELERATOR_H

#include <stdbool.h>

enum accelerator_state { ACCELERATOR_UNKNOWN, ACCELERATOR_IDLE, ACCELERATOR_BUSY };

void accelerator_init(void); /* call it in the process that may use CUDA */
/* Call it after a step of an optimizer. False: the thread uses no device, or was forked. */
bool accelerator_stepped(void);
/* Returns the current state. UNKNOWN: no optimizer has made a step since the last call. */
enum accelerator_state accelerator_state(void);

struct accelerator_use {
	unsigned long long ns; /* the length of the period that ends now */
	double percent;	       /* the share of this period in which a kernel ran */
};

/*
 * Call it after accelerator_stepped() has returned true. Returns false within a second of the last
 * value, in other threads than the first, or if the value is unknown (no NVML; no samples, as for a
 * part of a device: MIG).
 */
bool accelerator_use(struct accelerator_use *ret);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * accelerator_use.h - which share of the time an accelerator was busy, according to NVML
 *
 * Reads samples of NVML (libnvidia-ml.so.1, which this code loads) for the device of the thread
 * that called first. NVML keeps samples of the last seconds: each is the share of a period (1/6 to
 * 1 s) in which at least one kernel ran.
 *
 * Threads   Python's lock is held, so Python does not fork during a call of NVML.
 */
#ifndef HEADRACE_PYTHON_ACCELERATOR_USE_H
#define HEADRACE_PYTHON_ACCELERATOR_USE_H

#include <stdbool.h>

struct accelerator_use {
	unsigned long long ns; /* the length of the time until now to which `percent` refers */
	double percent;	       /* the share of this time in which a kernel ran */
};

/*
 * Call it after accelerator_stepped() has returned true. False: less than a second has passed since
 * the last value, another thread called first, or the value is unknown (no NVML, or no samples
 * because the device is a part of one: MIG).
 */
bool accelerator_use(struct accelerator_use *ret);

#endif

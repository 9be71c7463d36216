/* SPDX-License-Identifier: Apache-2.0 */
/*
 * accelerator_use.h - reads from NVML in which share of the time an accelerator was busy
 *
 * This code loads libnvidia-ml.so.1, and reads samples for the device of the thread that called
 * first. NVML keeps samples of the last seconds. Each is the share of a period (1/6 to 1 s) in
 * which at least one kernel ran.
 *
 * Threads   Python's lock is held, so Python does not fork during a call of NVML.
 */
#ifndef HEADRACE_PYTHON_ACCELERATOR_USE_H
#define HEADRACE_PYTHON_ACCELERATOR_USE_H

#include <stdbool.h>

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

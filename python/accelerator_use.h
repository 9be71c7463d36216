/* SPDX-License-Identifier: Apache-2.0 */
/*
 * accelerator_use.h - for how much of the time an accelerator was busy, by NVML
 *
 * Asks NVML (libnvidia-ml.so.1, which is loaded for it) about the device of the thread that asked
 * first. NVML keeps samples of the last seconds, each of which is the share of a period (1/6 to 1 s)
 * in which at least one kernel ran.
 *
 * Threads   Python's lock is held, so no fork by Python happens in a call of NVML.
 */
#ifndef HEADRACE_PYTHON_ACCELERATOR_USE_H
#define HEADRACE_PYTHON_ACCELERATOR_USE_H

#include <stdbool.h>

struct accelerator_use {
	unsigned long long ns; /* the time before this moment which `percent` is about */
	double percent;	       /* busy: a kernel ran */
};

/*
 * After accelerator_stepped() has returned true. False: less than a second has passed since the
 * last value, or it is not known: no NVML, no samples (a part of a device: MIG), another thread.
 */
bool accelerator_use(struct accelerator_use *ret);

#endif

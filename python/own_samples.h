/* SPDX-License-Identifier: Apache-2.0 */
/*
 * own_samples.h - samples of the thread that trains, outside of its waits for batches
 *
 * Marks with the name `samples` report them (docs/python.md), about every two seconds.
 *
 * Threads   one at a time; Python's lock is not needed.
 */
#ifndef HEADRACE_PYTHON_OWN_SAMPLES_H
#define HEADRACE_PYTHON_OWN_SAMPLES_H

#include <stdint.h>

#include "include/headrace.h"
#include "python/stack_text.h"

/*
 * Adds a sample of this moment (CLOCK_MONOTONIC, ns), which stands for so many ns on average. First
 * reports the earlier ones, if there are enough.
 */
void own_samples_add(const struct headrace_api *api, uint64_t at_ns, uint64_t every_ns,
		     const struct stack_text *text);

/* Reports the samples that are not reported yet. */
void own_samples_report(const struct headrace_api *api);

/* Forgets them. A forked child calls this. */
void own_samples_forget(void);

#endif

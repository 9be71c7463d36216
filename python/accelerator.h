/* SPDX-License-Identifier: Apache-2.0 */
/*
 * accelerator.h - whether an accelerator still had work when a wait for data ended
 *
 * After a step of an optimizer, an event is recorded on CUDA's legacy default stream. If this event
 * is not complete at the end of the next wait, the accelerator did not run out of work during the
 * wait. Uses libcuda.so.1 if the program has loaded it and the thread has a current context; loads
 * no library, makes no context, and never waits for the accelerator. In a forked child it does
 * nothing, because CUDA does not work there.
 *
 * Threads   Python's lock is held. Each thread has an event of its own.
 * Lifetime  An event is never destroyed, because its context may end first.
 */
#ifndef HEADRACE_PYTHON_ACCELERATOR_H
#define HEADRACE_PYTHON_ACCELERATOR_H

#include <stdbool.h>

enum accelerator_state { ACCELERATOR_UNKNOWN, ACCELERATOR_IDLE, ACCELERATOR_BUSY };

void accelerator_init(void); /* call it in the process that may use CUDA */
/*
 * Whether an optimizer of the thread has made a step on a device, and this is not a forked child.
 */
bool accelerator_stepped(void);
/* The state at this moment. UNKNOWN: no optimizer has made a step since the last call. */
enum accelerator_state accelerator_state(void);
/* The bus address of the thread's current device, after accelerator_stepped() has returned true. */
bool accelerator_address(char *ret, int size);

#endif

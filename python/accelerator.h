/* SPDX-License-Identifier: Apache-2.0 */
/*
 * accelerator.h - finds out whether an accelerator still had work when a wait for data ended
 *
 * After a step of an optimizer, this code records an event on CUDA's legacy default stream. If the
 * event is not complete at the end of the next wait, the accelerator had work during the whole
 * wait. This needs libcuda.so.1, loaded by the program, and a current context of the thread. This
 * code loads no library, makes no context, never waits for the accelerator, and does nothing in a
 * forked child, where CUDA does not work.
 *
 * Threads   Python's lock is held. Each thread has an event of its own.
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
/* Sets the bus address of the device of the thread. First call accelerator_stepped(). */
bool accelerator_address(char *ret, int size);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * stacks.h - samples of the Python stack during long fetches
 *
 * A fetch that lasts 20 ms or longer is sampled at each 20 ms; if it lasts longer than 320 ms, half
 * as often, and so on, so a fetch has at most 16 samples. A thread in C makes them. It exists from
 * the first fetch of a process on, but not during os.fork(), and waits for Python's lock only to
 * make a sample. A process samples one fetch at a time; fetches that begin meanwhile have none.
 *
 * Threads   Python's lock is held in all functions.
 */
#ifndef HEADRACE_PYTHON_STACKS_H
#define HEADRACE_PYTHON_STACKS_H

#include <stddef.h>
#include <stdint.h>

#include "python/stable_abi.h"

/*
 * Adds functions to the module: stacks_start((folder, caller...), foreign), see stack_text_set();
 * stacks_pause(), before a fork; stacks_stop(), before Python ends. Returns -1 after it has set a
 * Python error.
 */
int stacks_init(PyObject *module);

/* The thread begins a fetch at this moment (CLOCK_MONOTONIC, ns). Does nothing before the start. */
void stacks_begin(uint64_t at_ns);

/*
 * The thread ends the fetch that it began at this moment (0: unknown). Appends the member `stacks`
 * to the first `n` bytes of the args, if the fetch has samples. Returns the new number of bytes,
 * which leaves room for 64 more.
 */
size_t stacks_end(uint64_t began_ns, char *room, size_t size, size_t n);

#endif

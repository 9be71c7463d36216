/* SPDX-License-Identifier: Apache-2.0 */
/*
 * stacks.h - samples of the Python stack: during fetches, and of the thread that trains
 *
 * Samples are HR_ARGS_SAMPLES_EVERY_NS apart on average, whatever the fetches do; after 16 samples
 * of a fetch, twice as far, and so on. A thread in C makes them, without Python's lock. It exists
 * from stacks_start() or, in a forked child, from the first fetch on; from Python 3.12 on, not
 * during an os.fork() of the thread that trains. A process samples one fetch at a time; fetches
 * that begin meanwhile have no samples.
 *
 * While no fetch is sampled, the thread that called stacks_start() is (own_samples.h).
 *
 * Threads   Python's lock is held in all functions.
 */
#ifndef HEADRACE_PYTHON_STACKS_H
#define HEADRACE_PYTHON_STACKS_H

#include <stddef.h>
#include <stdint.h>

#include "include/headrace.h"
#include "python/stable_abi.h"

/*
 * Adds functions to the module: stacks_start((folder, caller...), foreign), see stack_text_set();
 * stacks_pause(), before a fork; stacks_worker(), in a worker that is about to make batches;
 * stacks_group(begins), before and after init_process_group(); stacks_stop(), before Python ends;
 * stacks_place(path, line, function, foreign), after the start: see stack_text_place(). Returns -1
 * after it has set a Python error.
 */
int stacks_init(PyObject *module, const struct headrace_api *functions);

/* The thread begins a fetch at this moment (CLOCK_MONOTONIC, ns). Does nothing before the start. */
void stacks_begin(uint64_t at_ns);

/*
 * The thread begins a wait for a batch of a worker; it ends one, or a step. If it is the one that
 * called stacks_start(), a wait or a step that lasts much longer than usual is marked (hang.h).
 */
void stacks_waits(uint64_t at_ns);
void stacks_works(void);

/*
 * Samples again after a fork. A wait or a step calls this, because Python 3.12 warns of a thread
 * that exists when os.fork() returns.
 */
void stacks_resume(void);

/*
 * The thread ends the fetch that it began at this moment (0: unknown). Appends the member `stacks`
 * to the first `n` bytes of the args, if the fetch has samples. Returns the new number of bytes,
 * which leaves room for 64 more.
 */
size_t stacks_end(uint64_t began_ns, char *room, size_t size, size_t n);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * unlocked.h - reads the Python stack of a thread of this process without Python's lock
 *
 * Python changes frames and frees code objects meanwhile. So the kernel copies the memory
 * (process_vm_readv), which fails where nothing is mapped, and each value is checked. A stack of
 * which the innermost frame changed while it was read is read again.
 *
 * Versions  CPython 3.7 to 3.13, with Python's lock. unlocked_init() tests this.
 * Threads   any thread, also one that Python does not know.
 */
#ifndef HEADRACE_PYTHON_UNLOCKED_H
#define HEADRACE_PYTHON_UNLOCKED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "python/stable_abi.h"

#define UNLOCKED_MAX 128u

/* Where a frame is: the addresses of its code object and of members of the code object. */
struct unlocked_place {
	uintptr_t code, file, function, lines;
	int32_t first_line;
	int32_t instruction; /* offset in bytes in the code; negative: before the first one */
};

/*
 * Sets the minor version of Python 3, and the type of code objects. Returns NULL, or why stacks
 * cannot be read here.
 */
const char *unlocked_set(int minor, const void *type_of_code);

/*
 * Sets both for this Python, and compares the stack of the calling thread with the answers of
 * Python's functions. Python's lock is held. Returns as unlocked_set().
 */
const char *unlocked_init(void);

/* Reads where up to UNLOCKED_MAX frames are, innermost first. Returns their number; 0: unknown. */
unsigned unlocked_places(const PyThreadState *thread, struct unlocked_place *ret);

/* Finds up to `max` other threads of the same interpreter. Returns their number. */
unsigned unlocked_threads(const PyThreadState *thread, const PyThreadState **ret, unsigned max);

/* Reads the file or the function as UTF-8. Returns false if the code is gone or the text long. */
bool unlocked_file(const struct unlocked_place *place, char *room, size_t size);
bool unlocked_function(const struct unlocked_place *place, char *room, size_t size);

/* Returns the number of the line. */
int unlocked_line(const struct unlocked_place *place);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * frames.h - reads frames and code objects of Python, and which files are not of the user's project
 *
 * Threads   Python's lock is held in all functions. They run no Python code, so no signal handler
 *           of the program; only python_texts() leaves a Python error.
 */
#ifndef HEADRACE_PYTHON_FRAMES_H
#define HEADRACE_PYTHON_FRAMES_H

#include <stdbool.h>
#include <stddef.h>

#include "python/stable_abi.h"

/* Finds the functions that only some versions of Python have. Call this first. */
void frames_init(void);

/* Returns the code object of a frame as a new reference. NULL: it cannot be read. */
PyObject *frame_code(PyObject *frame);

/*
 * Returns the frame that called `frame`, whose reference it drops, as a new reference. NULL: none.
 * To make a frame can collect garbage, which runs code of the program.
 */
PyObject *frame_outer(PyObject *frame);

/* Returns the UTF-8 of a text, which lives as long as the object. NULL: it is none. */
const char *python_text(PyObject *object);

/* Copies a text attribute as UTF-8. Returns false if it is missing or too long. */
bool text_attribute(PyObject *object, const char *name, char *room, size_t size);

/* Returns whether a path is below a folder. Nothing is below "" and "/". */
bool path_is_below(const char *folder, const char *path);

/* Returns whether a path is in site-packages, or below one of the folders (NULL-terminated). */
bool path_is_foreign(const char *path, const char *const *folders);

/*
 * Sets a NULL-terminated array of the texts of a tuple, to be kept for the life of the process.
 * Returns false after it has set a Python error.
 */
bool python_texts(PyObject *tuple, const char ***ret);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * function_names.h - which code objects are functions of the user's project, and their names
 *
 * Threads   Python's lock is held in all functions. They run no Python code, so no signal handler
 *           of the program, and they leave no Python error.
 */
#ifndef HEADRACE_PYTHON_FUNCTION_NAMES_H
#define HEADRACE_PYTHON_FUNCTION_NAMES_H

#include <stdbool.h>

#include "include/headrace.h"
#include "python/stable_abi.h"

/*
 * Sets the project's folder (an absolute path, or ""), the folders below which no code belongs to
 * the project, and the globs that names must match. Both lists are NULL-terminated, and must stay.
 * Returns false if memory is short.
 */
bool function_names_set(const char *folder, const char *const *foreign, const char *const *globs);

/*
 * Returns the name of a function that is to be recorded, or NULL. The frame that runs `code` is the
 * current one. The answer is remembered, and `code` is kept alive for it; without `keep_foreign`
 * not if the code is of another project.
 */
struct headrace_name *function_name(PyObject *code, bool keep_foreign);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * functions.h - the functions of the user's project as ranges (`headrace run --functions`)
 *
 * Python calls these hooks at each begin and end of a function: sys.monitoring since Python 3.12,
 * before that the profile hook of each thread. _headrace/functions.py installs them.
 */
#ifndef HEADRACE_PYTHON_FUNCTIONS_H
#define HEADRACE_PYTHON_FUNCTIONS_H

#include "include/headrace.h"
#include "python/stable_abi.h"

/* Adds the hooks to the module. Returns -1 with a Python error set if this fails. */
int functions_init(PyObject *module, const struct headrace_api *functions);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* library.h - functions of a shared library that the program may have */
#ifndef HEADRACE_PYTHON_LIBRARY_H
#define HEADRACE_PYTHON_LIBRARY_H

#include <dlfcn.h>
#include <stdbool.h>
#include <stddef.h>

struct library_function {
	const char *name;
	size_t at; /* offset of its pointer in the table */
};

/*
 * Opens a library (flags of dlopen) and fills a table of pointers to `n` of its functions. False: it
 * is not there, or lacks one. It is never closed.
 */
bool library_functions(const char *library, int flags, const struct library_function *list,
		       size_t n, void *table);

#endif

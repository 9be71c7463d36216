/* SPDX-License-Identifier: Apache-2.0 */
/* library.h - finds functions of a shared library */
#ifndef HEADRACE_PYTHON_LIBRARY_H
#define HEADRACE_PYTHON_LIBRARY_H

#include <dlfcn.h>
#include <stdbool.h>
#include <stddef.h>

struct library_function {
	const char *name;
	size_t at; /* offset of the function's pointer in the table */
};

/*
 * Opens a library (`flags` are those of dlopen), and fills a table with pointers to `n` of its
 * functions. False: the library is missing, or lacks one of them. It is never closed.
 */
bool library_functions(const char *library, int flags, const struct library_function *list,
		       size_t n, void *table);

#endif

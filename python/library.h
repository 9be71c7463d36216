/* SPDX-License-Identifier: Apache-2.0 */
/* library.h - finds functions of a shared library */
#ifndef HEADRACE_PYTHON_LIBRARY_H
#define HEADRACE_PYTHON_LIBRARY_H

#include <dlfcn.h>
#include <stdbool.h>
#include <stddef.h>

struct library_function {
	const char *name;
	size_t at; /* offset in the table for the pointer to the function */
};

/*
 * Opens a library (`flags` as of dlopen), which stays open, and sets the pointers to `n` functions
 * in a table. Returns false if the library is missing, or lacks a function.
 */
bool library_functions(const char *library, int flags, const struct library_function *list,
		       size_t n, void *table);

#endif

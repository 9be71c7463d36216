/* SPDX-License-Identifier: Apache-2.0 */
/*
 * environment.h - the environment that CMD gets
 *
 * Purpose   A copy of ours with LD_PRELOAD (what is there is kept, our library appended),
 *           PYTHONPATH with our start-up module first (docs/python.md; not with HEADRACE_PYTHON=off),
 *           HEADRACE_SOCKET, HEADRACE_STORE (absolute), HEADRACE_JOB, HEADRACE_EXCLUDE,
 *           HEADRACE_INCLUDE, HEADRACE_CMDLINE if asked for, and HEADRACE_ON_FULL=wait:1000 unless it is set: a person who asks
 *           for a trace wants all of it, and a restart of a killed daemon takes its time.
 *           NVTX_INJECTION64_PATH and INTEL_LIBITTNOTIFY64 name the library, too, unless they name another tool, or
 *           HEADRACE_NVTX=off.
 * Owner     The caller frees the result.
 * Threads   One.
 */
#ifndef HEADRACE_CLI_RUN_ENVIRONMENT_H
#define HEADRACE_CLI_RUN_ENVIRONMENT_H

#include <stdbool.h>

struct hr_environment {
	const char *library; /* path of libheadrace.so */
	const char *python;  /* folder of Python's start-up module, or NULL */
	const char *socket, *store, *job;
	const char *const *exclude,
	    *const *include; /* NULL-terminated; added to the variables' own lists */
	bool full_cmdline;
};

/* What becomes of Python's start-up module in a folder (NULL: there is none), by that and by HEADRACE_PYTHON. */
enum hr_python { HR_PYTHON_USED, HR_PYTHON_OFF, HR_PYTHON_ABSENT, HR_PYTHON_COLON };
enum hr_python hr_environment_python(const char *folder);

/* NULL when out of memory. */
char **hr_environment_new(const struct hr_environment *e);
void hr_environment_free(char **environment);

/* NULL, or why this library cannot be named in LD_PRELOAD (a space or colon in its path). */
const char *hr_environment_problem(const char *library);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * environment.h - the environment of CMD
 *
 * A copy of the environment of `headrace run` with these additions:
 *
 *      LD_PRELOAD        the shim, after other libraries
 *      PYTHONPATH        the start-up module first (docs/python.md); not with HEADRACE_PYTHON=off
 *      HEADRACE_ON_FULL  wait:1000 unless it is set: threads wait while a killed headraced
 *                        restarts, so that the trace stays complete
 *      HEADRACE_CMDLINE  with --full-cmdline
 *      HEADRACE_FUNCTIONS, HEADRACE_FUNCTIONS_FOLDER
 *                        with --functions: its globs, and the working directory
 *      HEADRACE_STACKS   the working directory; empty with --no-stacks
 *      HEADRACE_SOCKET, HEADRACE_STORE (absolute), HEADRACE_JOB, HEADRACE_EXCLUDE, HEADRACE_INCLUDE
 *      NVTX_INJECTION64_PATH, INTEL_LIBITTNOTIFY64
 *                        the shim, unless another tool is set; not with HEADRACE_NVTX=off
 */
#ifndef HEADRACE_CLI_RUN_ENVIRONMENT_H
#define HEADRACE_CLI_RUN_ENVIRONMENT_H

#include <stdbool.h>

struct hr_environment {
	const char *library;
	const char *python; /* folder of Python's start-up module, or NULL */
	/* socket "": the shim waits for headrace.record(); `store` and `job` are NULL */
	const char *socket, *store, *job;
	/* NULL-terminated lists, appended to HEADRACE_EXCLUDE and HEADRACE_INCLUDE */
	const char *const *exclude, *const *include;
	bool full_cmdline;
	const char *functions; /* globs of the Python functions to record; NULL: none */
	bool no_stacks;	       /* do not sample Python's stack in fetches */
};

/* Whether CMD gets Python's start-up module, which is in `folder` (NULL: not installed). */
enum hr_python {
	HR_PYTHON_USED,
	HR_PYTHON_OFF, /* HEADRACE_PYTHON=off */
	HR_PYTHON_ABSENT,
	HR_PYTHON_COLON /* the folder's path contains a colon, which PYTHONPATH cannot hold */
};
enum hr_python hr_environment_python(const char *folder);

char **hr_environment_new(const struct hr_environment *e);
void hr_environment_free(char **environment);

/*
 * Returns a path of libheadrace.so (malloc'ed), or NULL if it is not installed. If it is in a
 * folder that LD_PRELOAD cannot contain, the path leads through a link in the runtime folder.
 */
char *hr_library_find(void);

/* Returns why LD_PRELOAD cannot contain this path; NULL: it can. */
const char *hr_environment_problem(const char *library);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * munge_api.h - libmunge's functions, loaded at run time
 *
 * Threads   Any thread may call hr_munge_load. If it returns 0, hr_munge.encode(...) is callable,
 *           and the table is constant until exit.
 */
#ifndef HEADRACE_NET_MUNGE_API_H
#define HEADRACE_NET_MUNGE_API_H

#include <sys/types.h>

/* Values of libmunge, which tests/net/test_munge.c compares with munge.h. */
#define HR_EMUNGE_SUCCESS   0u
#define HR_EMUNGE_NO_MEMORY 5u
#define HR_EMUNGE_SOCKET    6u
#define HR_MUNGE_OPT_SOCKET 8

struct munge_ctx;

struct hr_munge {
	void *handle;
#define HR_MUNGE(ret, name, params) ret(*name) params; // NOLINT(bugprone-macro-parentheses): types
#include "net/munge_api.def"
#undef HR_MUNGE
};
extern struct hr_munge hr_munge;

#define HR_MUNGE_LIBRARY "libmunge.so.2"

/* Loads libmunge once. -ENOENT: not found; -ELIBACC: lacks a function. *ret_error: malloc'ed. */
int hr_munge_load(const char *library, char **ret_error);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * curl_api.h - libcurl's functions, loaded at run time
 *
 * Threads   Any thread may call hr_curl_load. If it returns 0, hr_curl.easy_init() is callable, and
 *           the table is constant until exit.
 */
#ifndef HEADRACE_NET_CURL_API_H
#define HEADRACE_NET_CURL_API_H

#define CURL_DISABLE_TYPECHECK
#include <curl/curl.h>

struct hr_curl {
	void *handle;
#define HR_CURL(ret, name, params) ret(*name) params; // NOLINT(bugprone-macro-parentheses): types
#include "net/curl_api.def"
#undef HR_CURL
};
extern struct hr_curl hr_curl;

/* Loads libcurl once. -ENOENT: not found; -ELIBACC: lacks a function. *ret_error: malloc'ed. */
int hr_curl_load(char **ret_error);

#endif

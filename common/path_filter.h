/* SPDX-License-Identifier: Apache-2.0 */
/*
 * path_filter.h - decides which paths are recorded
 *
 * For an absolute path, the first of these decides: the store, explicit excludes, includes (if
 * there are any, other paths are not recorded), Python's own files, default excludes.
 *
 * Threads   One thread calls hr_filter_init once. Then any thread may call hr_filter_verdict,
 *           which is pure.
 * Limits    A list keeps its first HR_FILTER_PATTERNS patterns and HR_FILTER_BYTES bytes
 *           (proto/abi.h). Further patterns are ignored and counted. `headrace run` refuses such a
 *           list.
 *
 * A pattern with `*` or `?` is a glob over the whole path (`*` matches any bytes, also `/`; `?` one
 * byte). Other patterns are path prefixes that end at a component. Commas separate patterns; there
 * is no escape.
 */
#ifndef HEADRACE_COMMON_PATH_FILTER_H
#define HEADRACE_COMMON_PATH_FILTER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "proto/abi.h"

/* HR__LEFT_OUT: a default filter excludes the path, not the user. The shim counts its opens. */
enum hr_verdict { HR__TRACED, HR__TRACED_RUNTIME, HR__EXCLUDED, HR__LEFT_OUT };

/* Lists as in the environment; NULL: not set. `defaults` NULL means HR__DEFAULT_EXCLUDE. */
struct hr_filter_config {
	const char *exclude;
	const char *include;
	const char *defaults;
	const char *store; /* folder of the store */
};
#define HR__DEFAULT_EXCLUDE "/etc,/dev,/usr,/bin,/boot,/lib,/lib64,/opt,/sbin,/sys,/proc,/run,/var"

#define HR__FILTER_LISTS 3u /* exclude, include, defaults */
#define HR__STORE_BYTES	 4096u

struct hr__pattern {
	const char *text;
	uint32_t bytes; /* a prefix has no slash at its end */
	bool glob;
};

/* A list of patterns, which is split once, not at each open. */
struct hr_patterns {
	const struct hr__pattern *v;
	uint32_t n;
};

/* Unused pages take no memory. Texts are copied, because programs overwrite their environment. */
struct hr_filter {
	uint32_t used, text_used;
	uint32_t dropped; /* number of patterns that did not fit */
	struct hr_patterns exclude, include, defaults;
	struct hr_patterns store; /* one prefix, or none */
	uint32_t kinds;		  /* how many default excludes, from the first, have a counter */
	bool has_include;
	bool shm; /* default excludes are on, and /dev/shm is not excluded */
	struct hr__pattern pool[HR__FILTER_LISTS * HR_FILTER_PATTERNS + 1];
	char text[HR__FILTER_LISTS * HR_FILTER_BYTES + HR__STORE_BYTES];
};

void hr_filter_init(struct hr_filter *f, const struct hr_filter_config *config);
/* *ret_kind: for HR__LEFT_OUT, the index in hr_map_hdr.excluded; otherwise unchanged. */
enum hr_verdict hr_filter_verdict(const struct hr_filter *f, const char *path, size_t bytes,
				  uint32_t *ret_kind);

bool hr__glob_match(const char *pattern, size_t n_pattern, const char *path, size_t bytes);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * left_out.h - the opens that default excludes left out (Process.excluded), and when to report them
 * to a person
 *
 * Owner     The caller; zeroed memory is an empty list. Threads: one.
 */
#ifndef HEADRACE_STORE_LEFT_OUT_H
#define HEADRACE_STORE_LEFT_OUT_H

#include <stddef.h>
#include <stdint.h>

#include "store/store.h"

struct hr_left_out_row {
	char *pattern; /* escaped (text.h); "": all patterns without a row */
	uint64_t opens;
};

struct hr_left_out {
	struct hr_left_out_row *v; /* most opens first */
	size_t n;
};

/* Adds to the pattern's row. 0 or -ENOMEM. */
int hr_left_out_add(struct hr_left_out *l, const void *pattern, size_t bytes, uint64_t opens);

/* Adds what a process reported. 0 or -ENOMEM. */
int hr_left_out_take(struct hr_left_out *l, const struct hr_process *process);

/*
 * "12,340 opens below /opt, 210 below /var: ...", malloc'ed: patterns that may well cover data,
 * with a hundred opens or more each, if together they are a tenth of all opens of data, `recorded`
 * and left out. NULL: nothing to report.
 */
char *hr_left_out_text(const struct hr_left_out *l, uint64_t recorded);

void hr_left_out_done(struct hr_left_out *l);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * left_out.h - the opens that default excludes left out (Process.excluded), and whether to report
 * them to the user
 *
 * The caller owns the list; zeroed memory is an empty one. One thread.
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

int hr_left_out_add(struct hr_left_out *l, const void *pattern, size_t bytes, uint64_t opens);

/* Adds what a process sent. 0 or -ENOMEM. */
int hr_left_out_take(struct hr_left_out *l, const struct hr_process *process);

/*
 * "12,340 opens below /opt, 210 below /var: ...", malloc'ed: patterns that may cover data, with at
 * least 100 opens each. NULL: none, or fewer than a tenth of all opens of data: these and the
 * `recorded` ones.
 */
char *hr_left_out_text(const struct hr_left_out *l, uint64_t recorded);

void hr_left_out_done(struct hr_left_out *l);

#endif

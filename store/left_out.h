/* SPDX-License-Identifier: Apache-2.0 */
/*
 * left_out.h - opens that default excludes left out (Process.excluded), and a text about them
 *
 * The caller owns the list. Zeroed memory is an empty list. One thread.
 */
#ifndef HEADRACE_STORE_LEFT_OUT_H
#define HEADRACE_STORE_LEFT_OUT_H

#include <stddef.h>
#include <stdint.h>

#include "store/store.h"

struct hr_left_out_row {
	char *pattern; /* escaped (text.h); "": the sum of all patterns without a row */
	uint64_t opens;
};

struct hr_left_out {
	struct hr_left_out_row *v; /* sorted, most opens first */
	size_t n;
};

int hr_left_out_add(struct hr_left_out *l, const void *pattern, size_t bytes, uint64_t opens);

/* Adds the opens that a process reported. 0 or -ENOMEM. */
int hr_left_out_take(struct hr_left_out *l, const struct hr_process *process);

/*
 * Returns a malloc'ed text: "12,340 opens below /opt, 210 below /var: ...". It lists patterns that
 * may cover data and have at least 100 opens each. NULL: no such pattern, or their opens are fewer
 * than a tenth of the sum of these and the `recorded` opens.
 */
char *hr_left_out_text(const struct hr_left_out *l, uint64_t recorded);

void hr_left_out_done(struct hr_left_out *l);

#endif

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
	char *pattern;
	uint64_t opens;
};

struct hr_left_out {
	struct hr_left_out_row *v; /* most opens first */
	size_t n, room;
};

int hr_left_out_add(struct hr_left_out *l, const void *pattern, size_t bytes, uint64_t opens);

/* Adds the opens that a process reported. Returns 0 or -ENOMEM. */
int hr_left_out_take(struct hr_left_out *l, const struct hr_process *process);

/*
 * Returns a malloc'ed text: "12,340 opens below /opt, 210 below /var: ...". The text lists patterns
 * that may cover data and have at least 100 opens each. Returns NULL if there is no such pattern,
 * or if their opens are less than a tenth of these and the `recorded` opens together.
 */
char *hr_left_out_text(const struct hr_left_out *l, uint64_t recorded);

void hr_left_out_done(struct hr_left_out *l);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * left_out.h - the opens that default excludes left out (Process.excluded), and when a person should hear of them
 *
 * Owner     The caller; zeroed memory is an empty list. Threads: one.
 */
#ifndef HEADRACE_STORE_LEFT_OUT_H
#define HEADRACE_STORE_LEFT_OUT_H

#include <stddef.h>
#include <stdint.h>

#include "store/store.h"

struct hr_left_out_row {
	char *pattern; /* escaped (text.h); "": patterns without a row of their own */
	uint64_t opens;
};

struct hr_left_out {
	struct hr_left_out_row *v; /* most opens first */
	size_t n;
};

/* Adds to the pattern's row. 0 or -ENOMEM. */
int hr_left_out_add(struct hr_left_out *l, const void *pattern, size_t bytes, uint64_t opens);

/* Adds all that a process says. 0 or -ENOMEM. */
int hr_left_out_take(struct hr_left_out *l, const struct hr_process *process);

/*
 * "12,340 opens below /opt, 210 below /var: ...", malloc'ed: patterns below which data may well lie, with a hundred opens or
 * more each, if all of these are a tenth of the opens of data, `recorded` and left out. NULL: nothing to say.
 */
char *hr_left_out_text(const struct hr_left_out *l, uint64_t recorded);

void hr_left_out_done(struct hr_left_out *l);

#endif

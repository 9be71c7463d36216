/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rows.h - messages for sums: file records and roll-ups as rows of a frame
 *
 * headraced and `headrace import` make their frames with these functions. All memory is in the
 * caller's arena; if there is none, the arena's `failed` is set, and rows are missing. Any thread.
 */
#ifndef HEADRACE_COMMON_ROWS_H
#define HEADRACE_COMMON_ROWS_H

#include "common/arena.h"
#include "common/filerec.h"
#include "common/rollup.h"
#include "proto/headrace.pb-c.h"

#define HR_ROWS_MOST 4096u /* rows of a frame, which keep it far below HR_FRAME_MAX_BYTES */

/* Makes n messages and an array of pointers to them. NULL: n is 0, or no memory. */
void *hr_rows_in(struct hr_arena *a, size_t n, size_t size, void *ret_pointers);

ProtobufCBinaryData hr_bytes_in(struct hr_arena *a, const void *data, size_t bytes);

/*
 * Fills `m` with rows of a window, from row `from` on. Returns the row where the next frame of the
 * window begins; t->n: none follows.
 */
uint32_t hr_rollups_message(struct hr_arena *a, const struct hr_rollups *t, uint64_t window,
			    uint32_t from, Headrace__RollupBatch *m);

void hr_filerec_message(struct hr_arena *a, const struct hr_filerec *r, Headrace__FileRecord *m);

/*
 * Returns the opens of excluded files as "PATTERN=OPENS,PATTERN=OPENS..." (malloc'ed; NULL: no
 * memory), and their sum. The patterns, which contain no comma, are as the node sent them.
 */
char *hr_excluded_text(const Headrace__Process *p, uint64_t *ret_opens);

#endif

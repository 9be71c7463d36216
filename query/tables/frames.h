/* SPDX-License-Identifier: Apache-2.0 */
/* frames.h - all frames of one kind of a stream */
#ifndef HEADRACE_QUERY_TABLES_FRAMES_H
#define HEADRACE_QUERY_TABLES_FRAMES_H

#include "query/tables/internal.h"

struct hr_frames {
	Headrace__Frame **list;
	size_t n;
	struct hr_arena arena; /* memory of the frames */
};

/* Damaged frames are left out, and count for the notes. Returns 0 or -ENOMEM. */
int hr_frames_read(struct hr_query *q, const struct hr_qstream *st, int body_case,
		   struct hr_frames *ret);
void hr_frames_free(struct hr_frames *f);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* trace.h - one trace, for trace.c (slices), trace_counters.c (all else) and trace_names.c */
#ifndef HEADRACE_EXPORT_TRACE_H
#define HEADRACE_EXPORT_TRACE_H

#include "common/map64.h"
#include "common/ops.h"
#include "export/export.h"
#include "export/gather.h"
#include "export/trace/trace_tracks.h"

#define HR_TRACE_ARGS	    10u /* at most so many arguments of a slice */
#define HR_TRACE_CATEGORIES 64u /* numbers of categories: classes below, then kinds of regions */

struct hr_arguments {
	struct hr_argument list[HR_TRACE_ARGS];
	size_t n;
};

struct hr_trace {
	struct hr_export *x;
	struct hr_trace_out *out;
	struct hr_tracks *tracks;
	struct hr_gather gather;
	struct hr_gather_limits limits;
	int64_t clock_ns; /* wall clock minus the clock of the trace */
	struct hr_track notes;
	/* texts that are interned so far */
	bool op_named[HR_OP_MAX];
	bool category_named[2 * HR_TRACE_CATEGORIES + 1];
	struct hr_map64 names;	   /* from a hash of the text to its number */
	uint64_t *path_named;	   /* bitmap by file number, for the current stream */
	uint64_t path_base;	   /* numbers of the current stream's paths begin after it */
	struct hr_arguments event; /* of the current operation, before which regions are written */
	struct hr_arguments region;
};

/* Writes the number of a text, unless *done, and sets *done. */
void hr_trace_intern(struct hr_trace *t, bool *done, enum hr_interned kind, uint64_t number,
		     const struct hr_bytes *text);
/* Set a name or category of a slice, and intern the text if it is new. */
void hr_trace_op_name(struct hr_trace *t, struct hr_slice *s, uint16_t op,
		      const struct hr_op_info *info);
void hr_trace_name(struct hr_trace *t, struct hr_slice *s, const void *text, size_t bytes);
void hr_trace_category(struct hr_trace *t, struct hr_slice *s, unsigned number, const char *text);

/* Writes the counters of all ranks, and what is lost or left out. Call it after all slices. */
void hr_trace_counters(struct hr_trace *t);
void hr_trace_notes(struct hr_trace *t);

#endif

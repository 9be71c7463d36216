/* SPDX-License-Identifier: Apache-2.0 */
/* nsys.h - one export in the format "nsys": nsys.c (the job), nsys_regions.c, nsys_calls.c */
#ifndef HEADRACE_EXPORT_NSYS_H
#define HEADRACE_EXPORT_NSYS_H

#include "common/map64.h"
#include "common/ops.h"
#include "export/export.h"
#include "export/gather.h"
#include "export/nsys/nsys_db.h"
#include "export/nsys/nsys_tables.h"

struct hr__nsys {
	struct hr_export *x;
	struct hr_nsys_db *db;
	int64_t base_ns;		 /* wall clock at time 0 of the file */
	int64_t end_ns;			 /* last moment, as time of the file */
	int64_t operations, regions;	 /* the last numbers */
	int64_t op_names[HR_OP_MAX];	 /* ids of texts; 0: unused */
	struct hr_map64 threads;	 /* named ones, by their global ids */
	struct hr_map64 defined;	 /* categories and domains */
	const struct hr_walk_stream *ws; /* the current stream */
	int64_t node;			 /* bits of its node in global ids */
	uint32_t *paths;		 /* ids of texts, by file number; 0: unused */
	struct hr_gather_limits limits;
};

/* The thread of the current row. */
struct hr__nsys_thread {
	int64_t id, rank, worker; /* HR_NSYS_NULL: no rank or worker */
};

/* Converts a time of the current stream's node. */
static inline int64_t hr__nsys_ns(const struct hr__nsys *n, uint64_t boot_ns)
{
	return hr_stream_real_ns(n->ws->s, boot_ns) - n->base_ns;
}

static inline void hr__nsys_take_end(struct hr__nsys *n, int64_t end_ns)
{
	n->end_ns = end_ns > n->end_ns ? end_ns : n->end_ns;
}

/* Finds the thread, and writes its name before its first row. Returns 0 or -errno. */
int hr__nsys_take_thread(struct hr__nsys *n, const struct hr_process *p, uint32_t tid,
			 struct hr__nsys_thread *ret);

/* Writes the categories that readers look for, also if no region has them. 0 or -errno. */
int hr__nsys_categories(struct hr__nsys *n);

/* Write the rows of the current stream. Return 0 or -errno. */
int hr__nsys_regions(struct hr__nsys *n);
int hr__nsys_operations(struct hr__nsys *n);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* nsys.h - one export in the format "nsys": nsys.c (the job), nsys_rows.c (its streams) */
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

/* Returns the bits of a stream's node in global ids. */
int64_t hr__nsys_node_bits(const struct hr_walk *w, size_t stream);

/* Writes the categories that readers look for, also if no region has them. 0 or -errno. */
int hr__nsys_categories(struct hr__nsys *n);

/* Writes the rows of a stream. 0 or -errno. */
int hr__nsys_stream(struct hr__nsys *n, size_t stream);

#endif

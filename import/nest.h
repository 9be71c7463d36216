/* SPDX-License-Identifier: Apache-2.0 */
/*
 * nest.h - regions in any order: computes their depth, and the step that they belong to
 *
 * Collects regions, sorts them by thread and time, and adds them to the stream. Regions that are
 * far from their place (more than HR_NEST_REGIONS) can get a depth that is too low. Steps and
 * epochs have no depth, as in a recording. A region
 * without a step gets that of the region around it, or of the step of its process at its start.
 *
 * Owner     A reader, for one stream. It frees the nest before the stream is read.
 * Threads   That of the file.
 */
#ifndef HEADRACE_IMPORT_NEST_H
#define HEADRACE_IMPORT_NEST_H

#include "import/stream.h"

#define HR_NEST_REGIONS (256u << 10)

struct hr_nest;
int hr_nest_new(struct hr_import_stream *s, struct hr_nest **ret);
void hr_nest_free(struct hr_nest *n);

/* Adds a region. It copies the texts. The region's depth is ignored. */
int hr_nest_add(struct hr_nest *n, uint32_t thread, const struct hr_import_region *region);

/* Adds what it has collected to the stream. */
int hr_nest_flush(struct hr_nest *n);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* passes.h - steps and epochs of loops whose program reports none: batches and passes of loaders */
#ifndef HEADRACE_QUERY_TABLES_PASSES_H
#define HEADRACE_QUERY_TABLES_PASSES_H

#include "query/tables/frames.h"

/*
 * Finds the processes of a stream that wait for batches of loaders, and have neither steps nor
 * epochs nor steps of an optimizer: inference, or an optimizer that headrace does not know. Adds a
 * frame with their steps and epochs:
 *
 *   - A pass over a loader is an epoch, from iter() to the end of its last wait. Passes that begin
 *     within another one are none.
 *   - Each batch of such a pass is a step, from its request to the next one of the pass.
 *
 * `f` has all frames with regions of the stream, after hr_regions_restore(). -ENOMEM.
 */
int hr__passes_add(struct hr_frames *f);

#endif

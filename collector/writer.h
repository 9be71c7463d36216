/* SPDX-License-Identifier: Apache-2.0 */
/* writer.h - what only tests may set of a writer */
#ifndef HEADRACE_COLLECTOR_WRITER_H
#define HEADRACE_COLLECTOR_WRITER_H

#include "collector/store.h"

/* Seals segments past `bytes` instead of HR_SEGMENT_BYTES. */
void hr__writer_segment_bytes(struct hr_writer *w, uint64_t bytes);

#endif

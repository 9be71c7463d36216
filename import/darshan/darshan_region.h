/* SPDX-License-Identifier: Apache-2.0 */
/*
 * darshan_region.h - reads a compressed region of a Darshan log
 *
 * A region is one or more zlib streams, or plain bytes. If it is cut or damaged, its bytes up to
 * there are returned, and `cut` is set. A region belongs to the reader of a file; one thread.
 */
#ifndef HEADRACE_IMPORT_DARSHAN_DARSHAN_REGION_H
#define HEADRACE_IMPORT_DARSHAN_DARSHAN_REGION_H

#include <isa-l/igzip_lib.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "import/input.h"

enum hr_darshan_compression {
	HR_DARSHAN_ZLIB,
	HR_DARSHAN_BZIP2, /* not supported */
	HR_DARSHAN_PLAIN
};

#define HR__DLOG_BACK  16u /* at the end of a stream, igzip has read up to 8 bytes too many */
#define HR__DLOG_BYTES 65536u

struct hr_darshan_source {
	struct hr_input *in;
	uint64_t at, end; /* in the file */
	enum hr_darshan_compression compression;
	bool begun, cut;
	size_t raw_at, raw_used;
	struct inflate_state z;
	uint8_t raw[HR__DLOG_BACK + HR__DLOG_BYTES];
};

/* Begins a region of `bytes` bytes at `offset`. The previous region of *s is forgotten. */
void hr__dlog_source_begin(struct hr_darshan_source *s, struct hr_input *in,
			   enum hr_darshan_compression compression, uint64_t offset,
			   uint64_t bytes);

/* Reads `bytes` bytes. Returns their number, which is lower only at the end; -errno. */
long hr__dlog_source_read(struct hr_darshan_source *s, void *to, size_t bytes);

#endif

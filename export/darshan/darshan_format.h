/* SPDX-License-Identifier: Apache-2.0 */
/*
 * darshan_format.h - a writer of the regions of a Darshan log (common/darshan.h)
 *
 * Each region is one zlib stream. All numbers are little-endian.
 *
 * Owner     The caller owns the descriptor. One thread writes a log.
 * Errors    Functions return 0 or -errno.
 */
#ifndef HEADRACE_EXPORT_DARSHAN_FORMAT_H
#define HEADRACE_EXPORT_DARSHAN_FORMAT_H

#include <isa-l/igzip_lib.h>

#include "common/darshan.h"

/* Returns the id of a name: Bob Jenkins' hash lookup8 of its bytes. */
uint64_t hr_darshan_id(const void *name, size_t bytes);

struct hr_darshan_log {
	int fd;
	uint64_t at; /* size of the log so far */
	struct hr_darshan_header header;
	uint64_t region_at;
	struct isal_zstream z;
	uint8_t level[ISAL_DEF_LVL1_DEFAULT];
	uint8_t out[65536];
};

/* Prepares a log in an empty file. Until hr_darshan_finish, no reader accepts the file. */
void hr_darshan_begin(struct hr_darshan_log *log, int fd);

/* Write one region: start, any number of puts, end. */
void hr_darshan_region_start(struct hr_darshan_log *log);
int hr_darshan_put(struct hr_darshan_log *log, const void *data, size_t bytes);
int hr_darshan_region_end(struct hr_darshan_log *log, struct hr_darshan_region *ret);

/* Like hr_darshan_region_end, for a region of a module. */
int hr_darshan_module_end(struct hr_darshan_log *log, enum hr_darshan_module module,
			  enum hr_darshan_version version);

/* Writes the header. */
int hr_darshan_finish(struct hr_darshan_log *log);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mounts.h - the mount of each file
 *
 * Purpose   The kernel's mount ids (mountinfo, statx) are unique in all mount namespaces while a
 *           mount exists, so one table is for all processes. At its first file, a mount gets a
 *           small id in the stream, which is never reused. After its path is known, the next Paths
 *           frame contains its row.
 * Owner     The engine; drain thread. hr_mountinfo_read only reads, for the drain thread.
 */
#ifndef HEADRACE_DAEMON_ENGINE_MOUNTS_H
#define HEADRACE_DAEMON_ENGINE_MOUNTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/journal/entry.h"

#define HR_MOUNTS_MOST 4096u

struct hr_mount {
	uint64_t dev;
	uint32_t kernel_id;
	/* mount id in the stream; 0: none, because no file of the mount was used yet */
	uint32_t id;
	char *path; /* NULL: not known yet */
	char *fs_type;
	bool gone; /* the kernel has reused kernel_id for another mount */
	bool sent;
};

struct hr_mounts {
	struct hr_mount *v;
	uint32_t n, room;
	uint32_t last_id;
	uint32_t last; /* index that the last search found */
	bool unsent;   /* the row of a mount with an id and a path must be sent */
};

/*
 * Returns the stream id of a file's mount. It finds the mount by its kernel id (-1: none), else by
 * device (dev < 0: none), else by the longest mount point that is a prefix of the path. 0: unknown.
 * *ret_missing: the caller should read a mountinfo.
 */
uint16_t hr_mounts_find(struct hr_mounts *m, int64_t kernel_id, int64_t dev, const uint8_t *path,
			uint32_t bytes, bool *ret_missing);

/* Adds a row of a MOUNTS entry. *ret_used: the row's size. -EBADMSG: it exceeds `bytes`. */
int hr_mounts_take(struct hr_mounts *m, const struct hr_mount_row *row, uint64_t bytes,
		   uint64_t *ret_used);

/* Writes mount i to `to` (if not NULL) as a row of a MOUNTS entry. Returns the row's size. */
uint64_t hr_mounts_row(const struct hr_mounts *m, uint32_t i, uint8_t *to);

void hr_mounts_done(struct hr_mounts *m);

/*
 * Writes to `to` those rows of a mountinfo that `m` lacks, until `room` is full. Mount points in
 * the text may have any bytes, and escapes \ooo. Returns the bytes used; *ret_n: number of rows.
 */
uint64_t hr_mountinfo_rows(const struct hr_mounts *m, char *text, uint8_t *to, uint64_t room,
			   uint64_t *ret_n);

/* Reads /proc/PID/mountinfo into malloc'ed, NUL-terminated text. Returns 0 or -errno. */
int hr_mountinfo_read(int pid, char **ret);

#endif

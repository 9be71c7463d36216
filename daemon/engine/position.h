/* SPDX-License-Identifier: Apache-2.0 */
/*
 * position.h - the file position of each descriptor of a process
 *
 * Purpose   read, write and stdio have no offset argument. Their events and file records have an
 *           offset if all moves of the position since an open (0) or a seek were recorded. A dup
 *           shares the position. If a descriptor was open before the attach, inherited over fork or
 *           exec, or opened with O_APPEND, its position is unknown until the next seek.
 * Owner     One table per process, in the engine; drain thread. Zeroed memory is an empty table.
 */
#ifndef HEADRACE_DAEMON_ENGINE_POSITION_H
#define HEADRACE_DAEMON_ENGINE_POSITION_H

#include <stdbool.h>
#include <stdint.h>

#include "common/map64.h"

/* Maximum number in one process; further descriptors have no position. */
#define HR_POSITION_FDS 65536u

struct hr_place {
	int64_t at;    /* bytes; -1: unknown */
	uint32_t file; /* stream file id at the open */
	uint16_t api;  /* enum hr_api of the open */
	uint16_t append;
	/* Number of its descriptors; 0: unused, and `file` is the next unused place + 1. */
	uint32_t refs;
};

struct hr_positions {
	struct hr_map64 by_fd; /* fd -> index in v */
	struct hr_place *v;
	uint32_t n, room, unused; /* unused: the first unused place + 1; 0: none */
};

struct hr_place *hr_position_get(struct hr_positions *t, int32_t fd); /* NULL: not tracked */

/* Sets a new position `at` for fd, and drops the old one. NULL: there are too many descriptors. */
struct hr_place *hr_position_open(struct hr_positions *t, int32_t fd, uint32_t file, uint16_t api,
				  int64_t at, bool append);

/* Makes `to` share the position of `from`, which may be unknown. */
void hr_position_dup(struct hr_positions *t, int32_t from, int32_t to);

/* Closes fd. True: fd was the last descriptor of a place, and the place is copied to *ret_last. */
bool hr_position_close(struct hr_positions *t, int32_t fd, struct hr_place *ret_last);

void hr_positions_done(struct hr_positions *t);

#endif

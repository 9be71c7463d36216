/* SPDX-License-Identifier: Apache-2.0 */
/*
 * position.h - the file position of each descriptor of a process
 *
 * Purpose   read, write and stdio have no offset argument. Their events and file records have an
 *           offset if all moves of the position since an open (0) or a seek were recorded. A dup
 *           shares the position. A descriptor that was open at a fork has no known position, in
 *           neither process: the other one moves it at any time. If a descriptor was open before
 *           the attach, or inherited over exec, a program that is not recorded may share it: its
 *           position is known only for the first call after a seek. In append mode, the offset of
 *           a write is not known, nor the position after it. Calls of several threads at the same
 *           time make the position unknown until the next seek.
 * Owner     One table per process, in the engine; drain thread. Zeroed memory is an empty table.
 */
#ifndef HEADRACE_DAEMON_ENGINE_POSITION_H
#define HEADRACE_DAEMON_ENGINE_POSITION_H

#include <stdbool.h>
#include <stdint.h>

#include "common/map64.h"

/* Maximum number of descriptors in one process; further descriptors have no position. */
#define HR_POSITION_FDS 65536u

enum hr_sharing {
	HR_SHARED_NEVER,
	HR_SHARED_PERHAPS, /* with a program that is not recorded */
	HR_SHARED	   /* with a child or the parent */
};

struct hr_place {
	int64_t at;	 /* the position in bytes; -1: unknown */
	uint32_t file;	 /* stream id of the file that was opened */
	uint16_t api;	 /* enum hr_api of the call that opened the file */
	uint8_t append;	 /* O_APPEND is set, or the flags are unknown */
	uint8_t shared;	 /* enum hr_sharing: with another process */
	uint8_t cloexec; /* all descriptors of the position are closed by exec */
	uint8_t stream;	 /* a stream of stdio uses it: the kernel's position is another one */
	/*
	 * Number of descriptors with this position; 0: unused, and `file` is the next unused index
	 * + 1.
	 */
	uint32_t refs;
	uint32_t tid;	 /* of the last call that used the position */
	uint64_t end_ns; /* of this call */
};

struct hr_positions {
	struct hr_map64 by_fd;
	struct hr_place *v;
	uint32_t n, room, unused; /* `unused`: index of the first unused element + 1; 0: none */
};

struct hr_place *hr_position_get(struct hr_positions *t, int32_t fd); /* NULL: not tracked */

/* Gives fd a new position `at`. `flags`: of the open. NULL: there are too many descriptors, or no memory. */
struct hr_place *hr_position_open(struct hr_positions *t, int32_t fd, uint32_t file, uint16_t api,
				  int64_t at, uint32_t flags);

/*
 * The process has a child, which shares the positions: all of them or, if it is a vfork child, which
 * runs another program, those that exec does not close.
 */
void hr_position_share(struct hr_place *p);
void hr_positions_share(struct hr_positions *t, bool vforked);

/* Makes `to` share the position of `from`, even if it is unknown. */
void hr_position_dup(struct hr_positions *t, int32_t from, int32_t to, bool cloexec);

/* Closes fd. True: no other descriptor shares its position, which is copied to *ret_last. */
bool hr_position_close(struct hr_positions *t, int32_t fd, struct hr_place *ret_last);

void hr_positions_done(struct hr_positions *t);

#endif

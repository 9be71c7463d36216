/* SPDX-License-Identifier: Apache-2.0 */
/*
 * stub_core.h - what the wrappers told the core
 *
 * Purpose   stub_core.c implements shim/core/core.h by noting every end of an operation and every hook. Only
 *           files below stub_root are tracked. Nothing is noted while it is off, so that test code may
 *           use the very functions that are under test.
 * Threads   One: the test's.
 */
#ifndef HEADRACE_STUB_CORE_H
#define HEADRACE_STUB_CORE_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/ops.h"

enum stub_kind { STUB_END, STUB_COUNT, STUB_HOOK };

struct stub_event {
	enum stub_kind kind;
	uint16_t id;
	int fd;
	int fd2;
	const char *path; /* below stub_root; NULL: no file */
	const char *path2;
	uint64_t asked;
	int64_t offset;
	int64_t offset2;
	int64_t ret;
	uint32_t flags;
	const char *hook; /* name of the core's function */
	char text[128];	  /* hr_env_set: NAME=VALUE; programs: path and first variable */
};
#define STUB_NOTICE 1234 /* of hr_before_exec */

extern char stub_root[PATH_MAX];
extern unsigned stub_buffers; /* hr_begin_buffer, since the reset */

void stub_reset(void);
void stub_on(void);
void stub_off(void);
/* The next event that was not yet taken, NULL when there is none. */
const struct stub_event *stub_take(void);
/* Path in the fd table without resolving: NULL when unknown, "" when ignored. */
const char *stub_fd_path(int fd);

#endif

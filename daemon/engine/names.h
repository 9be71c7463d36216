/* SPDX-License-Identifier: Apache-2.0 */
/*
 * names.h - the paths of files that are in use, for who looks at a job while it runs
 *
 * Purpose   The engine sends a path once and forgets its text (paths.h). Here it stays for as long as the file has a record
 *           (filerec.h), if it is open when it is sent, or was closed last: most files of a job that reads small ones are opened,
 *           read and closed between two frames, and nobody will ever ask.
 * Owner     The engine; drain thread. Nothing that reaches the store depends on it.
 */
#ifndef HEADRACE_DAEMON_ENGINE_NAMES_H
#define HEADRACE_DAEMON_ENGINE_NAMES_H

#include "common/arena.h"
#include "daemon/engine/filerec.h"
#include "daemon/engine/paths.h"

#define HR_NAMES_BYTES (1u << 20) /* of texts; more where the files in use have more */
#define HR_NAMES_IDLE  16u	  /* files that were closed last */

struct hr_name {
	const uint8_t *text;
	uint32_t file; /* stream file id */
	uint16_t bytes;
	uint16_t mount;
};

struct hr_names {
	struct hr_name *v; /* a file may be there twice: the later one holds */
	uint32_t n, room;
	struct hr_arena texts;
	size_t limit;
};

/* Keeps some of what was just sent: before hr_paths_fresh_sent. Without memory a file has no name here. */
void hr_names_take(struct hr_names *n, const struct hr_paths *paths,
		   const struct hr_filerecs *records);

/* Forgets files without a record, once there are many. */
void hr_names_tidy(struct hr_names *n, const struct hr_filerecs *records);

void hr_names_done(struct hr_names *n);

#endif
